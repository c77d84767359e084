//! Files with certificates.

use std::fmt;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};

/// The authorities in a file, PEM; or the file and what is wrong with it.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let wrong = |what: &dyn fmt::Display| format!("{}: {what}", path.display());
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&pem_reason(&error)))? {
        let added = certificate.map(|certificate| authorities.add(certificate));
        added.map_err(|error| wrong(&pem_reason(&error)))?.map_err(|error| wrong(&error))?;
    }
    Ok(authorities)
}

/// What is wrong with a PEM file.
pub(crate) fn pem_reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "there is nothing of that kind in it".to_owned(),
        _ => "it is not PEM, or damaged".to_owned(),
    }
}
