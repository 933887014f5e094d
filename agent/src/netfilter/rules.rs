//! Chains, and what their rules do with the packets that come to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// The families of tables that packets of IPv4 and IPv6 come to (`NFPROTO_*`).
pub(super) mod family {
    /// Both.
    pub(in super::super) const INET: u8 = 1;
    pub(in super::super) const IPV4: u8 = 2;
    pub(in super::super) const IPV6: u8 = 10;
}

/// One chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chain {
    /// `NFPROTO_*`.
    pub(super) family: u8,
    pub(super) table: String,
    pub(super) name: String,
}

/// What one expression of a rule does, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Leads the connection elsewhere.
    Redirects,
    /// The packet goes on in another chain of the table.
    GoesOn(String),
    /// It goes on wherever a map says, whose elements are not read: in any chain of the table.
    GoesAnywhere,
}

/// All of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The chains that incoming packets meet.
    pub(super) entries: BTreeSet<Chain>,
    /// What the rules of each chain do.
    pub(super) chains: BTreeMap<Chain, Vec<Does>>,
    /// Nothing changed while they were read.
    pub(super) is_whole: bool,
}

impl Rules {
    /// The first chain, in the order in which packets come to them, that has a rule which leads connections elsewhere.
    pub(super) fn first_redirect(&self) -> Option<&Chain> {
        let mut reached: Vec<&Chain> = self.entries.iter().collect();
        let mut next = 0;
        while let Some(&chain) = reached.get(next) {
            let rules = self.chains.get(chain).map(Vec::as_slice).unwrap_or_default();
            if rules.contains(&Does::Redirects) {
                return Some(chain);
            }
            for does in rules {
                let leads = |to: &&Chain| {
                    let named = match does {
                        Does::GoesOn(name) => to.name == *name,
                        Does::GoesAnywhere => true,
                        Does::Redirects => false,
                    };
                    named && to.family == chain.family && to.table == chain.table
                };
                for to in self.chains.keys().filter(leads) {
                    if !reached.contains(&to) {
                        reached.push(to);
                    }
                }
            }
            next += 1;
        }
        None
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            family::INET => "inet",
            family::IPV4 => "ip",
            _ => "ip6",
        };
        write!(f, "{} of table {family} {}", self.name, self.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(table: &str, name: &str) -> Chain {
        Chain { family: family::INET, table: table.to_owned(), name: name.to_owned() }
    }

    fn found(rules: &[(Chain, &[Does])]) -> Option<String> {
        let rules = Rules {
            entries: BTreeSet::from([chain("mesh", "prerouting")]),
            chains: rules.iter().map(|(chain, does)| (chain.clone(), does.to_vec())).collect(),
            is_whole: true,
        };
        rules.first_redirect().map(ToString::to_string)
    }

    #[test]
    fn a_redirect_is_found_where_incoming_packets_come_to_it_and_nowhere_else() {
        let on = |name: &str| Does::GoesOn(name.to_owned());
        let (entry, inner) = (chain("mesh", "prerouting"), chain("mesh", "inner"));
        let redirects: &[Does] = &[Does::Redirects];
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(entry.clone(), redirects)]).as_deref(), Some("prerouting of table inet mesh"));
        assert_eq!(found(&[(inner.clone(), redirects)]), None, "nothing leads there");
        let through = [(entry.clone(), &[on("inner")][..]), (inner.clone(), redirects)];
        assert_eq!(found(&through).as_deref(), Some("inner of table inet mesh"));
        let by_map = [(entry.clone(), &[Does::GoesAnywhere][..]), (inner.clone(), redirects)];
        assert_eq!(found(&by_map).as_deref(), Some("inner of table inet mesh"));
        let elsewhere = [(entry.clone(), &[on("inner")][..]), (chain("other", "inner"), redirects)];
        assert_eq!(found(&elsewhere), None, "a jump stays in its table");
        let round = [(entry.clone(), &[on("inner")][..]), (inner, &[on("prerouting")][..])];
        assert_eq!(found(&round), None);
    }
}
