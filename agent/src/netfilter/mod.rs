//! What the rules of the pod's own network do with connections that come in: whether some lead elsewhere than to the port that
//! they came for, as those of a mesh do (W8).
//!
//! The rules are followed as the kernel does, from the chains that incoming packets meet (`prerouting`) to those that they jump
//! to. What a rule matches is not looked at: a rule for one port is enough for its pod to be named.

mod dump;
mod rules;

use std::{fmt, fs};

pub(crate) use self::rules::Chain;
use crate::netlink::DumpError;

/// How often rules that change while they are read are read again.
const TRIES: u32 = 3;

/// What leads connections elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// A rule of this chain.
    Rule(Chain),
    /// A table of the iptables from before nftables, whose rules cannot be read in the same way. The kernel makes one where
    /// somebody uses it (`xt_find_table_lock`).
    Legacy(&'static str),
}

/// The first that is found. `None` as well where the kernel has no nftables.
///
/// # Errors
///
/// When the kernel does not tell its rules, as without `CAP_NET_ADMIN`.
pub(crate) fn redirect() -> Result<Option<Redirect>, DumpError> {
    let mut rules = dump::read()?;
    for _ in 1..TRIES {
        if rules.is_whole {
            break;
        }
        rules = dump::read()?;
    }
    Ok(rules.first_redirect().cloned().map(Redirect::Rule).or_else(legacy))
}

fn legacy() -> Option<Redirect> {
    ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"].into_iter().find_map(|file| {
        let tables = fs::read_to_string(file).unwrap_or_default(); // no such file, no such tables
        tables.lines().any(|table| table == "nat").then_some(Redirect::Legacy(file))
    })
}

impl fmt::Display for Redirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(chain) => write!(f, "a netfilter rule in the pod's network (chain {chain})"),
            Self::Legacy(file) => write!(f, "the table `nat` of iptables in the pod's network ({file} names it)"),
        }
    }
}
