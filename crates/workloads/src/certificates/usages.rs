//! The usages of keys, by the names that a request gives them.

/// The name of a usage and its bit in the extension.
const KEY_USAGES: [(&str, u16); 10] = [
    ("signing", 0x8000),
    ("digital signature", 0x8000),
    ("content commitment", 0x4000),
    ("key encipherment", 0x2000),
    ("data encipherment", 0x1000),
    ("key agreement", 0x0800),
    ("cert sign", 0x0400),
    ("crl sign", 0x0200),
    ("encipher only", 0x0100),
    ("decipher only", 0x0080),
];

/// The name of an extended usage and its object identifier, in the order in which they are written.
const EXTENDED_USAGES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 0x25, 0x00]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    (
        "netscape sgc",
        &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1],
    ),
];

/// The bits and the object identifiers of usages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Usages {
    pub(super) bits: u16,
    pub(super) extended: Vec<&'static [u8]>,
}

impl Usages {
    /// Reads the names; the first that is not known is the error.
    pub(super) fn of<'n>(names: &[&'n str]) -> Result<Self, &'n str> {
        let is_known = |name: &str| {
            KEY_USAGES.iter().any(|(known, _)| *known == name)
                || EXTENDED_USAGES.iter().any(|(known, _)| *known == name)
        };
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            return Err(unknown);
        }
        let bits = KEY_USAGES.iter().filter(|(name, _)| names.contains(name));
        let extended = EXTENDED_USAGES
            .iter()
            .filter(|(name, _)| names.contains(name));
        let mut extended: Vec<&[u8]> = extended.map(|(_, id)| *id).collect();
        extended.dedup();
        Ok(Self {
            bits: bits.fold(0, |set, (_, bit)| set | bit),
            extended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_are_written_in_one_order_and_once() {
        let usages = Usages::of(&["s/mime", "client auth", "email protection", "signing"]);
        let usages = usages.expect("they are known");
        assert_eq!(usages.bits, 0x8000);
        assert_eq!(usages.extended.len(), 2);
        assert_eq!(usages.extended[0].last(), Some(&2));
        assert_eq!(Usages::of(&["signing", "singing"]), Err("singing"));
    }
}
