//! TLS certificates and keys, and the TLS configuration made from them.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum_server::tls_rustls::RustlsConfig;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;

use crate::auth::fingerprint;
use crate::config::TlsConfig;
use crate::config_error::ConfigError;

/// Settings with paths of the files.
const CERTIFICATE: &str = "tls.certificate";
const KEY: &str = "tls.key";
const CLIENT_CA: &str = "tls.client_ca";

/// Reads the certificate authorities in a PEM file. An error names the file.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let wrong = |what: &dyn fmt::Display| format!("{}: {what}", path.display());
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&pem_reason(&error)))? {
        let added = certificate.map(|certificate| authorities.add(certificate));
        added.map_err(|error| wrong(&pem_reason(&error)))?.map_err(|error| wrong(&error))?;
    }
    Ok(authorities)
}

/// Describes an error in a PEM file without quoting its content.
fn pem_reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "there is nothing of that kind in it".to_owned(),
        _ => "it is not PEM, or damaged".to_owned(),
    }
}

/// Verifies that clients have a certificate signed by an authority in the file.
fn known_clients(
    path: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, ConfigError> {
    let authorities = authorities(path).map_err(|reason| ConfigError::for_setting(CLIENT_CA, reason))?;
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(provider))
        .build()
        .map_err(|error| ConfigError::for_setting(CLIENT_CA, format!("{}: {error}", path.display())))
}

/// TLS configuration for new connections.
#[derive(Debug)]
pub(crate) struct Certificates {
    config: RustlsConfig,
    fingerprint: Mutex<String>,
}

/// Content of the TLS files.
pub(crate) struct Tls {
    config: Arc<rustls::ServerConfig>,
    /// Covers all files except the key, which must match the certificate.
    fingerprint: String,
}

impl Certificates {
    pub fn new(tls: &Tls) -> Self {
        let fingerprint = Mutex::new(tls.fingerprint.clone());
        Self { config: RustlsConfig::from_config(Arc::clone(&tls.config)), fingerprint }
    }

    pub fn config(&self) -> &RustlsConfig {
        &self.config
    }

    /// Uses `new` for connections from now on. Returns whether it differs.
    pub fn replace(&self, new: Tls) -> bool {
        self.config.reload_from_config(new.config);
        let mut fingerprint = self.fingerprint.lock().unwrap_or_else(PoisonError::into_inner);
        let other = *fingerprint != new.fingerprint;
        *fingerprint = new.fingerprint;
        other
    }
}

/// A configuration error for a PEM file. Doesn't quote its content.
fn pem_error(setting: &'static str, path: &Path, error: &pem::Error) -> ConfigError {
    ConfigError::for_setting(setting, format!("{}: {}", path.display(), pem_reason(error)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| pem_error(CERTIFICATE, path, &error))
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, ConfigError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| pem_error(KEY, path, &error))
}

/// Errors in the individual files, or if there are none, in their combination.
pub(crate) fn mistakes(config: &TlsConfig) -> Vec<ConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = config.client_ca.as_deref().map(|path| known_clients(path, &provider)).transpose();
    let files = [certificates(&config.certificate).err(), private_key(&config.key).err(), clients.err()];
    let mut found: Vec<ConfigError> = files.into_iter().flatten().collect();
    if found.is_empty() {
        found.extend(tls_config(config).err());
    }
    found
}

/// Reads certificates and key, and the client authorities if configured.
pub(crate) fn tls_config(config: &TlsConfig) -> Result<Tls, ConfigError> {
    let certificates = certificates(&config.certificate)?;
    let key = private_key(&config.key)?;
    let mut parts: Vec<Vec<u8>> = certificates.iter().map(|certificate| certificate.to_vec()).collect();
    if let Some(path) = &config.client_ca {
        let unreadable = |error| pem_error(CLIENT_CA, path, &pem::Error::Io(error));
        parts.push(std::fs::read(path).map_err(unreadable)?);
    }
    let fingerprint = fingerprint(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = config.client_ca.as_deref().map(|path| known_clients(path, &provider)).transpose()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| match clients {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        })
        .and_then(|builder| builder.with_single_cert(certificates, key))
        .map_err(|error| {
            ConfigError::for_setting(CERTIFICATE, format!("{}: {error}", config.certificate.display()))
        })?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Tls { config: Arc::new(tls), fingerprint })
}
