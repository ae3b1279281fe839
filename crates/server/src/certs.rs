//! Keys and certificates of one data directory.
//!
//! A directory has its own authority, made at the first start, which signs the certificate the
//! server shows and the one the administrator may show. Keys are P-256: they take under a
//! millisecond to make. All files are readable by their owner alone.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SerialNumber,
};
use windlass_core::{Env, Time};

use crate::private_file;

/// How long certificates are good for. They belong to one directory on one machine.
const VALID_DAYS: i64 = 3650;
const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Names under which the server is reached, besides those the caller adds.
const HOST_NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "127.0.0.1",
    "::1",
];

/// The group whose members may do everything.
const ADMIN_GROUP: &str = "system:masters";

/// Why keys or certificates could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A key or certificate could not be made, or one on disk could not be read as such.
    #[error("cannot make certificates")]
    Make(#[from] rcgen::Error),
    /// The key of the authority is gone while its certificate is there.
    #[error(
        "{key} is missing, but {certificate} is there: put {key} back, or remove {certificate} as \
         well to make a new authority, which clients have to be told",
        key = .path.display(), certificate = .path.with_extension("crt").display()
    )]
    MissingKey {
        /// The file of the key.
        path: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot use {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// A certificate and its key, both in PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// Everything a server needs to prove who it is, and its administrator likewise.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority that signs the others, in PEM.
    pub authority: String,
    /// The authority with its key, for those who sign in its name.
    pub signer: Identity,
    /// What the server shows.
    pub serving: Identity,
    /// What the administrator may show.
    pub admin: Identity,
    /// Further authorities whose client certificates are accepted, in PEM; empty for none.
    pub client_authorities: String,
    /// The authority of the front proxy, in PEM. Extension API servers believe the user names in
    /// request headers that come with a certificate it has signed.
    pub proxy_authority: String,
    /// The certificate that this server shows to extension API servers.
    pub proxy_client: Identity,
}

/// The common name of the certificate that extension API servers are shown.
pub(crate) const PROXY_CLIENT_NAME: &str = "front-proxy-client";

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(..)")
    }
}

impl Certificates {
    /// The certificates in a directory, made if they are not there. The serving certificate is
    /// made anew at each start, because the names it is for may change.
    pub fn in_directory(dir: &Path, hosts: &[String], env: &Env) -> Result<Self, CertificateError> {
        let authority = authority_in(dir, CLUSTER_AUTHORITY, env)?;
        let proxy = authority_in(dir, PROXY_AUTHORITY, env)?;
        Self::signed_by(&authority, &proxy, hosts, env)
    }

    /// Certificates that live as long as the process.
    pub fn in_memory(hosts: &[String], env: &Env) -> Result<Self, CertificateError> {
        let authority = make_authority(CLUSTER_AUTHORITY, env)?;
        let proxy = make_authority(PROXY_AUTHORITY, env)?;
        Self::signed_by(&authority, &proxy, hosts, env)
    }

    fn signed_by(
        authority: &Identity,
        proxy: &Identity,
        hosts: &[String],
        env: &Env,
    ) -> Result<Self, CertificateError> {
        let issuer = issuer(authority, CLUSTER_AUTHORITY, env)?;
        let mut names: Vec<String> = HOST_NAMES.iter().map(|&name| name.to_owned()).collect();
        names.extend(hosts.iter().filter(|host| is_host(host)).cloned());
        names.dedup();
        let mut serving = params("windlass-server", names, env)?;
        serving.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let mut admin = params("windlass-admin", Vec::new(), env)?;
        admin
            .distinguished_name
            .push(DnType::OrganizationName, ADMIN_GROUP);
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let mut proxy_client = params(PROXY_CLIENT_NAME, Vec::new(), env)?;
        proxy_client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let proxy_issuer = self::issuer(proxy, PROXY_AUTHORITY, env)?;
        Ok(Self {
            authority: authority.certificate.clone(),
            signer: authority.clone(),
            serving: sign(&serving, &issuer)?,
            admin: sign(&admin, &issuer)?,
            client_authorities: String::new(),
            proxy_authority: proxy.certificate.clone(),
            proxy_client: sign(&proxy_client, &proxy_issuer)?,
        })
    }

    /// All authorities whose client certificates are accepted, in PEM.
    pub(crate) fn trusted_by_clients(&self) -> String {
        format!("{}{}", self.client_authorities, self.authority)
    }
}

/// An authority of a data directory: the stem of its files, and its common name.
#[derive(Clone, Copy)]
struct AuthorityName {
    files: &'static str,
    common_name: &'static str,
}

/// The authority of the server and its clients.
const CLUSTER_AUTHORITY: AuthorityName = AuthorityName {
    files: "ca",
    common_name: "windlass-ca",
};

/// The authority of the front proxy: it must not be the one of the clients, whom extension API
/// servers would otherwise believe whatever they say about themselves.
const PROXY_AUTHORITY: AuthorityName = AuthorityName {
    files: "front-proxy-ca",
    common_name: "windlass-front-proxy-ca",
};

fn issuer(
    authority: &Identity,
    name: AuthorityName,
    env: &Env,
) -> Result<Issuer<'static, KeyPair>, rcgen::Error> {
    let key = KeyPair::from_pem(&authority.key)?;
    Ok(Issuer::new(authority_params(name, env)?, key))
}

/// Whether a text can stand in a certificate as a host.
fn is_host(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok() || windlass_core::names::dns1123_subdomain(host).is_empty()
}

fn make_authority(name: AuthorityName, env: &Env) -> Result<Identity, CertificateError> {
    let key = KeyPair::generate()?;
    let certificate = authority_params(name, env)?.self_signed(&key)?;
    Ok(Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// What the authority is called and may do. With its key this is all that signing needs.
fn authority_params(name: AuthorityName, env: &Env) -> Result<CertificateParams, rcgen::Error> {
    let mut params = params(name.common_name, Vec::new(), env)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

fn params(name: &str, hosts: Vec<String>, env: &Env) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(hosts)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // Two servers with the same authority must not show the same number.
    params.serial_number = Some(SerialNumber::from(env.random_u64() >> 1));
    let now = env.now().unix();
    // A day back, for clients whose clock is a little behind.
    let (year, month, date) = day(now - DAY_SECONDS);
    params.not_before = rcgen::date_time_ymd(year, month, date);
    let (year, month, date) = day(now + VALID_DAYS * DAY_SECONDS);
    params.not_after = rcgen::date_time_ymd(year, month, date);
    Ok(params)
}

/// The year, month and day a time falls on: certificates need no finer grain.
fn day(unix_seconds: i64) -> (i32, u8, u8) {
    let text = Time::from_unix(unix_seconds).to_string();
    let number = |from, to| {
        text.get(from..to)
            .and_then(|digits| digits.parse::<u16>().ok())
    };
    let part = |from, to| {
        number(from, to)
            .and_then(|value| u8::try_from(value).ok())
            .unwrap_or(1)
    };
    (number(0, 4).unwrap_or(1970).into(), part(5, 7), part(8, 10))
}

fn sign(
    params: &CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<Identity, CertificateError> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok(Identity {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// The authority of a directory, made if there is none. Its certificate can be made again from
/// its key; a certificate without its key is an error, because clients trust that one.
fn authority_in(dir: &Path, name: AuthorityName, env: &Env) -> Result<Identity, CertificateError> {
    let key_path = dir.join(format!("{}.key", name.files));
    let path = dir.join(format!("{}.crt", name.files));
    let (key, certificate) = (read_key(&key_path)?, read_optional(&path)?);
    let (key, is_new) = match (key.is_empty(), certificate.is_empty()) {
        (false, false) => return Ok(Identity { certificate, key }),
        (false, true) => (KeyPair::from_pem(&key)?, false),
        (true, false) => return Err(CertificateError::MissingKey { path: key_path }),
        (true, true) => (KeyPair::generate()?, true),
    };
    let authority = Identity {
        certificate: authority_params(name, env)?.self_signed(&key)?.pem(),
        key: key.serialize_pem(),
    };
    if is_new {
        let effect = "clients that know the old authority need the new kubeconfig";
        // Data directories of versions without aggregation have no authority of the front proxy.
        if name.files == CLUSTER_AUTHORITY.files && private_file::has_store(dir) {
            private_file::warn_of_new_key(&key_path, effect);
        }
        create(&key_path, &authority.key)?;
    }
    // After its key: a crash in between leaves the key, which is enough.
    create(&path, &authority.certificate)?;
    Ok(authority)
}

fn read_key(path: &Path) -> Result<String, CertificateError> {
    let fail = |source| CertificateError::File {
        path: path.to_owned(),
        source,
    };
    let bytes = private_file::read_key(path).map_err(fail)?;
    String::from_utf8(bytes.unwrap_or_default())
        .map_err(|_| fail(io::ErrorKind::InvalidData.into()))
}

fn read_optional(path: &Path) -> Result<String, CertificateError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(CertificateError::File {
            path: path.to_owned(),
            source,
        }),
    }
}

fn create(path: &Path, text: &str) -> Result<(), CertificateError> {
    private_file::create_key(path, text.as_bytes()).map_err(|source| CertificateError::File {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_authority_key_is_an_error_and_a_missing_certificate_is_made_again() {
        let (dir, env) = (tempfile::tempdir().unwrap(), Env::seeded(1));
        let first = Certificates::in_directory(dir.path(), &[], &env).unwrap();
        let key = dir.path().join("ca.key");
        let text = fs::read_to_string(&key).unwrap();
        fs::remove_file(&key).unwrap();
        let refused = Certificates::in_directory(dir.path(), &[], &env).unwrap_err();
        assert!(refused.to_string().starts_with(key.to_str().unwrap()));
        assert!(!key.exists(), "no other key was made in its place");

        create(&key, &text).unwrap();
        let again = Certificates::in_directory(dir.path(), &[], &env).unwrap();
        assert_eq!(again.authority, first.authority);
        // A crash at the first start may leave the key alone.
        fs::remove_file(dir.path().join("ca.crt")).unwrap();
        Certificates::in_directory(dir.path(), &[], &env).unwrap();
        assert_eq!(fs::read_to_string(&key).unwrap(), text);
    }
}
