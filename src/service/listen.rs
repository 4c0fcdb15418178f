//! Where a server of ours listens: its address, its certificate, and how connections are served.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};

use super::error::{Result, ServiceError};

/// Certificate and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
}

/// An address that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    listener: TcpListener,
    tls: Option<RustlsConfig>,
}

impl Listener {
    /// Listens, but in the clear only where no other machine comes.
    ///
    /// # Errors
    /// When the address or the certificate cannot be used.
    pub(crate) async fn open(address: &str, tls: Option<&Tls>, insecure: bool) -> Result<Self> {
        let tls = match tls {
            Some(tls) => Some(load(tls).await?),
            None => None,
        };
        let failed = |source| ServiceError::Address {
            address: address.to_owned(),
            source,
        };
        let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(failed)?.collect();
        let is_open = addresses.iter().any(|address| !address.ip().is_loopback());
        if is_open && tls.is_none() && !insecure {
            return Err(ServiceError::Insecure {
                address: address.to_owned(),
            });
        }
        let listener = TcpListener::bind(&*addresses).map_err(failed)?;
        Ok(Self {
            address: listener.local_addr().map_err(failed)?,
            listener,
            tls,
        })
    }

    /// Where clients find it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves until the handle says that it is over. A connection that is idle for `head_time` is closed.
    ///
    /// # Errors
    /// When connections cannot be taken.
    pub(crate) async fn serve(
        self,
        router: Router,
        handle: Handle<SocketAddr>,
        head_time: Duration,
    ) -> std::io::Result<()> {
        let mut server = axum_server::from_tcp(self.listener)?
            .handle(handle)
            .first_request_timeout(head_time);
        server.http_builder().http1().header_read_timeout(head_time);
        match self.tls {
            Some(config) => {
                // Clients may choose HTTP/2 in the handshake.
                let mut http2 = server.http_builder().http2();
                http2.keep_alive_interval(head_time).keep_alive_timeout(head_time);
                let acceptor = RustlsAcceptor::new(config).handshake_timeout(head_time);
                server.acceptor(acceptor).serve(router.into_make_service()).await
            }
            None => server.http1_only().serve(router.into_make_service()).await,
        }
    }
}

async fn load(tls: &Tls) -> Result<RustlsConfig> {
    RustlsConfig::from_pem_file(&tls.certificate, &tls.key)
        .await
        .map_err(|source| ServiceError::Tls {
            certificate: tls.certificate.clone(),
            key: tls.key.clone(),
            source,
        })
}
