//! Databases that are new, foreign, newer or missing, and their settings.

use threadfold_postgres::{OpenError, PostgresStore};

use crate::support::{append, execute, open, rows, run, said, server, texts};

#[test]
fn stores_that_open_at_once_share_a_new_database() {
    let Some(server) = server() else { return };
    for _ in 0..3 {
        let address = server.database();
        let opened = run(async {
            let opens = (0..8).map(|_| tokio::spawn(open_owned(address.clone())));
            futures::future::join_all(opens).await
        });
        for (index, store) in opened.into_iter().enumerate() {
            let store = store.unwrap().unwrap();
            append(&store, &format!("t{index}"), &[said(0, index.to_string())]).unwrap();
        }
        let store = open(&address);
        for index in 0..8 {
            assert_eq!(texts(&store, &format!("t{index}")), [index.to_string()]);
        }
    }
}

async fn open_owned(address: String) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(&address).await
}

#[test]
fn a_foreign_schema_is_refused_and_not_changed() {
    let Some(server) = server() else { return };
    let tables = "SELECT table_name::text FROM information_schema.tables \
                  WHERE table_schema = 'threadfold' ORDER BY 1";
    for (foreign, left) in [
        ("CREATE SCHEMA threadfold; CREATE TABLE threadfold.looms (x text)", ["looms"]),
        (
            "CREATE SCHEMA threadfold; CREATE TABLE threadfold.version (version integer)",
            ["version"],
        ),
    ] {
        let address = server.database();
        execute(&address, foreign);
        let error = run(PostgresStore::open(&address)).unwrap_err();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert_eq!(rows(&address, tables), left);
    }
}

#[test]
fn a_newer_schema_is_refused_and_not_changed() {
    let Some(server) = server() else { return };
    let address = server.database();
    append(&open(&address), "t", &[said(0, "hi")]).unwrap();
    execute(&address, "UPDATE threadfold.version SET version = 99");
    let error = run(PostgresStore::open(&address)).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, newest: 1, .. }), "{error}");
    assert!(error.to_string().ends_with("has version 99; this build reads up to 1"), "{error}");
    execute(&address, "UPDATE threadfold.version SET version = 1");
    assert_eq!(texts(&open(&address), "t"), ["hi"]);
}

#[test]
fn errors_of_opening_do_not_contain_the_password() {
    let Some(server) = server() else { return };
    let address = server.database();
    let latin = server.database_with("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let error = run(PostgresStore::open(&latin)).unwrap_err();
    assert!(matches!(error, OpenError::Encoding { .. }), "{error}");
    let missing = address.replace("postgres@", "postgres:hush@") + "-missing";
    for address in [missing, "postgres://me:hush@localhost:1/x".to_owned()] {
        let error = run(PostgresStore::open(&address)).unwrap_err();
        assert!(matches!(error, OpenError::Server { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
    }
}

#[test]
fn commits_are_durable_and_see_earlier_ones_with_any_database_settings() {
    let Some(server) = server() else { return };
    let address = server.database();
    let name = address.rsplit('/').next().unwrap();
    let settings = format!(
        "ALTER DATABASE {name} SET synchronous_commit = off;
         ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"
    );
    execute(&address, &settings);
    let store = open(&address);
    // A trigger records the setting that the appending transaction has.
    let trigger = "CREATE TABLE public.seen (setting text);
        CREATE FUNCTION public.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO public.seen VALUES
                (current_setting('synchronous_commit')), (current_setting('transaction_isolation'));
            RETURN NULL; END $$;
        CREATE TRIGGER look AFTER INSERT ON threadfold.logs EXECUTE FUNCTION public.look()";
    execute(&address, trigger);
    append(&store, "t", &[said(0, "hi")]).unwrap();
    assert_eq!(rows(&address, "SELECT setting FROM public.seen"), ["on", "read committed"]);
}

#[cfg(not(feature = "tls"))]
#[test]
fn requested_encryption_is_never_omitted() {
    let Some(server) = server() else { return };
    let error = run(PostgresStore::open(&(server.database() + "?sslmode=require"))).unwrap_err();
    assert!(matches!(error, OpenError::Encryption { .. }), "{error}");
}
