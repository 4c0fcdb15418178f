//! API keys: `clade_<id>_<secret>`. The store keeps the id and a salted hash of the secret.

use std::fmt;
use std::str::FromStr;

use rand::RngCore;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

const PREFIX: &str = "clade";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
const SALT_BYTES: usize = 16;

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// Run jobs: the routes of workers and no others.
    Worker,
    /// Look at the jobs of its user.
    Read,
    /// Hand in and cancel jobs as well.
    Submit,
    /// Everything, with the jobs of all users.
    Admin,
}

impl Role {
    /// Name as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }

    /// The role of a stored name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Worker, Self::Read, Self::Submit, Self::Admin]
            .into_iter()
            .find(|role| role.as_str() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key as its user has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Id of the key.
    pub key_id: String,
    secret: String,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.key_id)
    }
}

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKey;

impl FromStr for Secret {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, NoKey> {
        let mut parts = text.split('_');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(PREFIX), Some(key_id), Some(secret), None)
                if is_hex(key_id, ID_BYTES) && is_hex(secret, SECRET_BYTES) =>
            {
                Ok(Self {
                    key_id: key_id.to_owned(),
                    secret: secret.to_owned(),
                })
            }
            _ => Err(NoKey),
        }
    }
}

fn is_hex(text: &str, bytes: usize) -> bool {
    text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// What the store keeps of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretHash {
    /// Random bytes, hexadecimal.
    pub salt: String,
    /// SHA-256 of salt and secret, hexadecimal.
    pub hash: String,
}

impl SecretHash {
    fn of(secret: &str, salt: String) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(salt.as_bytes());
        hasher.update(secret.as_bytes());
        Self {
            hash: hex::encode(hasher.finalize()),
            salt,
        }
    }

    /// The hash of no secret, so that an unknown id takes as long as a wrong secret.
    pub fn of_nothing() -> Self {
        Self {
            salt: "0".repeat(2 * SALT_BYTES),
            hash: "0".repeat(64),
        }
    }

    /// Whether a secret is the one; the time does not depend on how far it is right.
    pub fn is_of(&self, secret: &Secret) -> bool {
        let given = Self::of(&secret.secret, self.salt.clone());
        given.hash.as_bytes().ct_eq(self.hash.as_bytes()).into()
    }
}

impl Secret {
    /// What is kept of it, with a salt of its own.
    pub fn to_hash(&self) -> SecretHash {
        SecretHash::of(&self.secret, random_hex(SALT_BYTES))
    }
}

/// A new key: its text, shown once, and what is kept of it.
pub fn new_key() -> (String, String, SecretHash) {
    let (key_id, secret) = (random_hex(ID_BYTES), random_hex(SECRET_BYTES));
    let text = format!("{PREFIX}_{key_id}_{secret}");
    let hash = SecretHash::of(&secret, random_hex(SALT_BYTES));
    (text, key_id, hash)
}

fn random_hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    rand::rng().fill_bytes(&mut random);
    hex::encode(random)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_opens_its_own_hash_and_no_other() {
        let (text, key_id, hash) = new_key();
        let secret: Secret = text.parse().unwrap();
        assert_eq!(secret.key_id, key_id);
        assert!(hash.is_of(&secret));
        let (other, _, _) = new_key();
        assert!(!hash.is_of(&other.parse().unwrap()));
        assert!(!SecretHash::of_nothing().is_of(&secret));
        assert!(
            !format!("{secret:?}").contains(&text[20..]),
            "a secret is never printed"
        );
    }

    #[test]
    fn other_texts_are_no_keys() {
        let (text, _, _) = new_key();
        for other in [
            "",
            "clade",
            "clade__",
            &text[..text.len() - 1],
            &format!("{text}_"),
            &text.to_uppercase(),
        ] {
            assert_eq!(other.parse::<Secret>(), Err(NoKey), "{other}");
        }
    }
}
