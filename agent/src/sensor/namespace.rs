//! The network namespace's own TCP counters, from `/proc/self/net/snmp` and `/proc/self/net/netstat`
//! (`net/ipv4/proc.c`). Both hold pairs of lines: names, then numbers.

use crate::core::event::NamespaceCounters;

/// The counters could not be read.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No such file, or no right to it.
    #[error("cannot read {path}, where the kernel shows the pod's TCP counters: {source}")]
    Read {
        /// The file.
        path: &'static str,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// The file has no such counter.
    #[error("{path} has no counter {counter}; is this Linux?")]
    Missing {
        /// The file.
        path: &'static str,
        /// The counter, as `group: name`.
        counter: &'static str,
    },
}

const SNMP: &str = "/proc/self/net/snmp";
const NETSTAT: &str = "/proc/self/net/netstat";

/// Reads the counters of the process's namespace.
///
/// # Errors
///
/// If a file cannot be read or lacks a counter that every kernel has.
pub fn counters() -> Result<NamespaceCounters, NamespaceError> {
    let snmp = read(SNMP)?;
    let netstat = read(NETSTAT)?;
    let tcp = |name, counter| value(&snmp, "Tcp:", name).ok_or(NamespaceError::Missing { path: SNMP, counter });
    // The second file is read after the first: see `NamespaceCounters::cookies_received`.
    // Counters of `TcpExt` came and went with kernels: one that is absent has counted nothing.
    let extended = |name| value(&netstat, "TcpExt:", name).unwrap_or(0);
    Ok(NamespaceCounters {
        passive_opens: tcp("PassiveOpens", "Tcp: PassiveOpens")?,
        dropped: extended("ListenDrops") + extended("TCPReqQFullDrop"),
        cookies_sent: extended("SyncookiesSent"),
        cookies_received: extended("SyncookiesRecv"),
        resets_sent: tcp("OutRsts", "Tcp: OutRsts")?,
    })
}

/// Reads `Tcp: PassiveOpens` alone.
///
/// # Errors
///
/// As [`counters`].
pub fn passive_opens() -> Result<u64, NamespaceError> {
    value(&read(SNMP)?, "Tcp:", "PassiveOpens")
        .ok_or(NamespaceError::Missing { path: SNMP, counter: "Tcp: PassiveOpens" })
}

fn read(path: &'static str) -> Result<String, NamespaceError> {
    std::fs::read_to_string(path).map_err(|source| NamespaceError::Read { path, source })
}

/// The number under a name in a group.
fn value(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_ascii_whitespace().position(|candidate| candidate == name)?;
    values.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Tcp: RtoMin PassiveOpens MaxConn\nTcp: 200 17 -1\nUdp: InDatagrams\nUdp: 4\n";

    #[test]
    fn finds_the_number_under_the_name() {
        assert_eq!(value(TEXT, "Tcp:", "PassiveOpens"), Some(17));
        assert_eq!(value(TEXT, "Udp:", "InDatagrams"), Some(4));
    }

    #[test]
    fn what_is_not_there_or_no_number_is_none() {
        assert_eq!(value(TEXT, "Tcp:", "MaxConn"), None);
        assert_eq!(value(TEXT, "Tcp:", "Nothing"), None);
        assert_eq!(value(TEXT, "Icmp:", "InMsgs"), None);
        assert_eq!(value("Tcp: PassiveOpens\n", "Tcp:", "PassiveOpens"), None);
        assert_eq!(value("", "Tcp:", "PassiveOpens"), None);
    }

    #[test]
    fn the_running_kernel_has_them() {
        assert!(counters().is_ok());
        assert!(passive_opens().is_ok());
    }
}
