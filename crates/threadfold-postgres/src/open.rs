//! Opening a database: the pool, the settings of its connections, the tables.

use std::{error::Error, time::Duration};

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use threadfold::message::Text;
use tokio_postgres::{
    Config, NoTls,
    config::{Host, SslMode},
};

use crate::schema::{self, Content, VERSION};

/// How long a future waits for a connection of the pool, and for a new connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// The settings that every connection needs, independent of those of the database. `READ COMMITTED`
/// lets a fence be compared with the last commit of another writer. A commit must be on the disk
/// when it returns, which only `synchronous_commit = off` would prevent.
const SETTINGS: &str = "
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off';
";

/// Why a database cannot be opened. The database is unchanged in every case but
/// [`Server`](Self::Server).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address is not the address of a database.
    #[error("not an address of a database: {reason}")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// The database has a schema `threadfold` of another program.
    #[error("{place} has a schema named threadfold that another program made")]
    Foreign {
        /// The database.
        place: Text,
    },
    /// A newer build wrote the schema.
    #[error("{place} has version {found}; this build reads up to {newest}")]
    Newer {
        /// The database.
        place: Text,
        /// The version of the schema.
        found: u32,
        /// The newest version that this build reads.
        newest: u32,
    },
    /// The database stores text in an encoding that cannot hold every text.
    #[error("{place} has the encoding {encoding}; expected UTF8")]
    Encoding {
        /// The database.
        place: Text,
        /// Its encoding.
        encoding: String,
    },
    /// The address asks for an encrypted connection (`sslmode=require`), and this build has none:
    /// the feature `tls` is off, or the system has no certificates.
    #[error("{place} cannot be reached by an encrypted connection: {reason}")]
    Encryption {
        /// The database.
        place: Text,
        /// What is missing.
        reason: String,
    },
    /// The server cannot be reached, or refused the connection or a statement.
    #[error("{place}: {}", reason(source.as_ref()))]
    Server {
        /// The database.
        place: Text,
        /// The error of the pool or of the server.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Opens the database at this address, with its tables.
pub(crate) async fn open(address: &str) -> Result<(Pool, Text), OpenError> {
    let config: Config =
        address.parse().map_err(|error| OpenError::Address { reason: reason(&error) })?;
    let place = place(&config);
    let pool = Pool::builder(manager(config, &place)?)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(PATIENCE))
        .create_timeout(Some(PATIENCE))
        .post_create(Hook::async_fn(|client, _| {
            Box::pin(
                async move { client.batch_execute(SETTINGS).await.map_err(HookError::Backend) },
            )
        }))
        .build()
        .map_err(|error| failed(&place, error))?;
    let mut client = pool.get().await.map_err(|error| failed(&place, error))?;
    let encoding = client.query_one("SHOW server_encoding", &[]).await;
    let encoding = encoding.and_then(|row| row.try_get::<_, String>(0));
    let encoding = encoding.map_err(|error| failed(&place, error))?;
    if encoding != "UTF8" {
        return Err(OpenError::Encoding { place, encoding });
    }
    let content = schema::migrate(&mut client).await.map_err(|error| failed(&place, error))?;
    match content {
        Content::Ours(found) if found > VERSION => {
            Err(OpenError::Newer { place, found, newest: VERSION })
        }
        Content::Ours(_) => Ok((pool, place)),
        Content::Foreign => Err(OpenError::Foreign { place }),
    }
}

fn failed(place: &Text, error: impl Error + Send + Sync + 'static) -> OpenError {
    OpenError::Server { place: place.clone(), source: error.into() }
}

/// Returns an error with its causes, because the client's errors alone say little.
pub(crate) fn reason(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn manager(config: Config, place: &Text) -> Result<Manager, OpenError> {
    // The task of a connection notices when it is dead. Asking the server each time would double
    // the round trips of an append.
    let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    if config.get_ssl_mode() != SslMode::Require {
        let mut config = config;
        config.ssl_mode(SslMode::Disable);
        return Ok(Manager::from_config(config, NoTls, fast));
    }
    encrypted(config, fast).map_err(|reason| OpenError::Encryption { place: place.clone(), reason })
}

/// Trusts the certificates of the system, or those of the file in `SSL_CERT_FILE`.
#[cfg(feature = "tls")]
fn encrypted(config: Config, manager: ManagerConfig) -> Result<Manager, String> {
    use rustls::{ClientConfig, RootCertStore, crypto::ring};
    use tokio_postgres_rustls::MakeRustlsConnect;

    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("the system has no certificates to trust {why}"));
    }
    let tls = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Manager::from_config(config, MakeRustlsConnect::new(tls), manager))
}

#[cfg(not(feature = "tls"))]
fn encrypted(_: Config, _: ManagerConfig) -> Result<Manager, String> {
    Err("the feature `tls` is off".to_owned())
}

/// Returns the host and name of the database, for errors. It does not contain the password.
fn place(config: &Config) -> Text {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map_or(String::new(), |port| format!(":{port}"));
    let name = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}{port}/{name}").into()
}
