//! SHA-256 over bytes and over lists of named parts.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `bytes` in lower-case hexadecimal.
pub(crate) fn of_bytes(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// A SHA-256 over named parts. Lengths go in too, so that no two lists of parts have the same bytes.
#[derive(Default)]
pub(crate) struct Parts(Sha256);

// === impl Parts ===

impl Parts {
    /// Adds a part. The order of the parts counts.
    pub(crate) fn add(&mut self, name: &str, content: &[u8]) {
        for field in [name.as_bytes(), content] {
            self.0.update((field.len() as u64).to_le_bytes());
            self.0.update(field);
        }
    }

    /// The digest in lower-case hexadecimal.
    pub(crate) fn finish(self) -> String {
        hexadecimal(&self.0.finalize())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_standard_digest() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn moving_a_byte_between_parts_changes_the_digest() {
        let digest = |parts: &[(&str, &str)]| {
            let mut digest = Parts::default();
            for (name, content) in parts {
                digest.add(name, content.as_bytes());
            }
            digest.finish()
        };
        assert_eq!(digest(&[("a", "bc")]), digest(&[("a", "bc")]));
        assert_ne!(digest(&[("a", "bc")]), digest(&[("ab", "c")]));
        assert_ne!(digest(&[("a", "b"), ("c", "d")]), digest(&[("c", "d"), ("a", "b")]));
    }
}
