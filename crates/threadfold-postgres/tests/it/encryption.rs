//! Encrypted connections. The trusted certificates are set by an environment variable, so each case
//! runs in a process of its own.

use std::env;

use threadfold_postgres::{OpenError, PostgresStore};

use crate::support::{CHILD, append, child_with, run, said, server, texts};

const TEST: &str = "encryption::a_server_is_trusted_by_its_certificate_and_name";

#[test]
fn a_server_is_trusted_by_its_certificate_and_name() {
    if let Ok(address) = env::var(CHILD) {
        match run(PostgresStore::open(&address)) {
            Ok(store) => {
                append(&store, "t", &[said(0, "hi")]).unwrap();
                println!("\nstored {:?}", texts(&store, "t"));
            }
            Err(error @ OpenError::Server { .. }) => println!("\nrefused {error}"),
            Err(error) => panic!("{error}"),
        }
        return;
    }
    let Some(server) = server() else { return };
    let (root, address) = (format!("{}/root.crt", server.folder), server.database());
    if !std::path::Path::new(&root).exists() {
        eprintln!("skipped: the server has no certificate, because openssl is missing");
        return;
    }
    let open = |address: &str, authority: &str| {
        let child = child_with(TEST, address, &[("SSL_CERT_FILE", authority)]);
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let encrypted = address + "?sslmode=require";
    let stored = open(&encrypted, &root);
    assert!(stored.contains("stored [\"hi\"]"), "{stored}");
    // The certificate is for another name.
    let other = open(&encrypted.replace("localhost", "127.0.0.1"), &root);
    assert!(other.contains("refused"), "{other}");
    // The certificate is from another authority.
    let system = "/etc/ssl/certs/ca-certificates.crt";
    if std::path::Path::new(system).exists() {
        let unknown = open(&encrypted, system);
        assert!(unknown.contains("refused"), "{unknown}");
    }
}
