//! The cluster's certificate authority. The API server takes a client's name and groups from its certificate, and the
//! roles that it makes by itself bind the names of its components.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Signs, and keeps what it signs in a directory.
pub(crate) struct Authority {
    directory: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// The files of a certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

// === impl Authority ===

impl Authority {
    pub(crate) fn new(directory: &Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "lab");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?).context("no certificate authority")?;
        let authority = Self { directory: directory.to_owned(), issuer };
        write(&authority.certificate(), &authority.issuer.pem())?;
        Ok(authority)
    }

    /// The file of its own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    /// For a server that is called by any of the addresses.
    pub(crate) fn server(&self, name: &str, addresses: impl IntoIterator<Item = IpAddr>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = addresses.into_iter().map(SanType::IpAddress).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(name, params)
    }

    /// For a client of that user name, in a group.
    pub(crate) fn client(&self, file: &str, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(file, params)
    }

    fn sign(&self, file: &str, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer).with_context(|| format!("no certificate for {file}"))?;
        self.keep(file, &certificate.pem(), &key.serialize_pem())
    }

    /// A pair of keys without a certificate, for the tokens of service accounts; its public key is in the place of a
    /// certificate.
    pub(crate) fn key_pair(&self, file: &str) -> Result<Identity> {
        let key = KeyPair::generate()?;
        self.keep(file, &key.public_key_pem(), &key.serialize_pem())
    }

    fn keep(&self, file: &str, public: &str, private: &str) -> Result<Identity> {
        let [certificate, key] = ["crt", "key"].map(|end| self.directory.join(format!("{file}.{end}")));
        write(&certificate, public)?;
        write(&key, private)?;
        Ok(Identity { certificate, key })
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{} was not written", path.display()))
}
