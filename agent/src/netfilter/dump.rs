//! nftables' chains and rules as the kernel tells them (`nf_tables_dump_chains`, `nf_tables_dump_rules`). The iptables of today
//! writes the same, with targets of its own.

use std::{convert::Infallible, ffi::CStr};

use netlink_bindings::{
    nftables::{
        ExprOps, IterableChainAttrs, IterableExprAttrs, IterableRuleAttrs, Nfgenmsg, OpGetchainDump, OpGetruleDump,
        Request, VerdictCode,
    },
    traits::{NetlinkRequest, Protocol},
};
use netlink_packet_core::{NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};
use netlink_sys::protocols::NETLINK_NETFILTER;

use super::rules::{Chain, Does, Rules, family};
use crate::netlink::{Answer, Dump, DumpError};

/// `NF_INET_PRE_ROUTING`: before it is decided who gets a packet.
const PREROUTING: u32 = 0;
/// `NFT_NAT_DNAT`.
const DNAT: u32 = 1;
/// `NFT_REG_VERDICT`, where a map of verdicts puts what it finds.
const VERDICT_REGISTER: u32 = 0;

pub(super) fn read() -> Result<Rules, DumpError> {
    match dumped() {
        // The kernel has no nftables, and so no rules of it.
        Err(DumpError::Open { source, .. } | DumpError::Refused { source, .. })
            if matches!(source.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::EINVAL)) =>
        {
            Ok(Rules { is_whole: true, ..Rules::default() })
        }
        other => other,
    }
}

fn dumped() -> Result<Rules, DumpError> {
    let mut dump = Dump::open(NETLINK_NETFILTER, "netfilter")?;
    let mut rules = Rules::default();
    let every_family = Nfgenmsg::new();
    let chains = dump.each(Message::of(&Request::new().op_getchain_dump(&every_family)), |message: Message| {
        let (header, chain) = OpGetchainDump::decode_reply(&message.body);
        if let Some((chain, is_entry)) = chain_of(header.nfgen_family, &chain) {
            rules.chains.entry(chain.clone()).or_default();
            rules.entries.extend(is_entry.then_some(chain));
        }
    })?;
    let written = dump.each(Message::of(&Request::new().op_getrule_dump(&every_family)), |message: Message| {
        let (header, rule) = OpGetruleDump::decode_reply(&message.body);
        if let Some((chain, does)) = rule_of(header.nfgen_family, &rule) {
            rules.chains.entry(chain).or_default().extend(does);
        }
    })?;
    rules.is_whole = [chains, written] == [Answer::Whole; 2];
    Ok(rules)
}

/// A chain, and whether incoming packets meet it. `None` for what carries no packets of IPv4 or IPv6 to the pod's sockets.
fn chain_of(family: u8, chain: &IterableChainAttrs<'_>) -> Option<(Chain, bool)> {
    let name = (chain.get_table().ok()?, chain.get_name().ok()?);
    let hook = chain.get_hook().ok().and_then(|hook| hook.get_num().ok());
    Some((named(family, name)?, hook == Some(PREROUTING)))
}

fn rule_of(family: u8, rule: &IterableRuleAttrs<'_>) -> Option<(Chain, Vec<Does>)> {
    let chain = named(family, (rule.get_table().ok()?, rule.get_chain().ok()?))?;
    let expressions = rule.get_expressions().ok()?;
    Some((chain, expressions.get_elem().filter_map(|expression| does(&expression)).collect()))
}

fn named(family: u8, (table, name): (&CStr, &CStr)) -> Option<Chain> {
    let text = |name: &CStr| name.to_string_lossy().into_owned();
    [family::INET, family::IPV4, family::IPV6].contains(&family).then(|| Chain {
        family,
        table: text(table),
        name: text(name),
    })
}

fn does(expression: &IterableExprAttrs<'_>) -> Option<Does> {
    if expression.get_name().is_ok_and(|name| name == c"redir") {
        return Some(Does::Redirects);
    }
    match expression.get_data().ok()? {
        ExprOps::Tproxy(_) => Some(Does::Redirects),
        ExprOps::Nat(nat) => (nat.get_type().ok()? == DNAT).then_some(Does::Redirects),
        ExprOps::Target(target) => {
            let name = target.get_name().ok()?;
            [c"REDIRECT", c"DNAT", c"TPROXY"].contains(&name).then_some(Does::Redirects)
        }
        ExprOps::Immediate(immediate) => {
            let verdict = immediate.get_data().ok()?.get_verdict().ok()?;
            let code = VerdictCode::from_value(verdict.get_code().ok()?.into());
            matches!(code, Some(VerdictCode::Jump | VerdictCode::Goto))
                .then(|| verdict.get_chain().ok().map(|name| Does::GoesOn(name.to_string_lossy().into_owned())))
                .flatten()
        }
        ExprOps::Lookup(lookup) => (lookup.get_dreg().ok()? == VERDICT_REGISTER).then_some(Does::GoesAnywhere),
        _ => None,
    }
}

/// A message whose body the bindings write and read.
struct Message {
    kind: u16,
    body: Vec<u8>,
}

impl Message {
    fn of(request: &impl NetlinkRequest) -> Self {
        let kind = match request.protocol() {
            Protocol::Raw { request_type, .. } => request_type,
            Protocol::Generic(_) => 0,
        };
        Self { kind, body: request.payload().to_vec() }
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, body: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, body: body.to_vec() })
    }
}
