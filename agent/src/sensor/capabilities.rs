//! Which capabilities the agent has, by asking the kernel before anything fails for want of one.

use std::fmt;

/// A capability that the sensor needs, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_BPF` (kernel 5.8): load programs and maps.
    Bpf,
    /// `CAP_NET_ADMIN`: attach programs to interfaces.
    NetAdmin,
    /// `CAP_NET_RAW`: open a packet socket.
    NetRaw,
}

/// The needed capabilities that the agent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCapabilities(pub Vec<Capability>);

/// `CAP_SYS_ADMIN` in `linux/capability.h`: stands for `CAP_BPF` on kernels that lack it, and beside it.
const SYS_ADMIN: u32 = 21;

impl Capability {
    /// What the sensors need that run a program in the kernel.
    pub const FOR_PROGRAMS: [Self; 2] = [Self::Bpf, Self::NetAdmin];

    /// Its bit in `linux/capability.h`.
    const fn bit(self) -> u32 {
        match self {
            Self::Bpf => 39,
            Self::NetAdmin => 12,
            Self::NetRaw => 13,
        }
    }

    /// Its name as container runtimes spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "BPF",
            Self::NetAdmin => "NET_ADMIN",
            Self::NetRaw => "NET_RAW",
        }
    }

    /// What the agent needs it for.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Bpf => "to load the program that counts SYNs",
            Self::NetAdmin => "to attach it to the pod's interfaces",
            Self::NetRaw => "to see packets without a program in the kernel",
        }
    }
}

/// What the agent lacks of these; `None` if it has all, or its capabilities could not be read (then trying tells).
pub(super) fn missing(needed: &[Capability]) -> Option<MissingCapabilities> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    missing_in(effective(&status)?, needed)
}

fn missing_in(effective: u64, needed: &[Capability]) -> Option<MissingCapabilities> {
    let has = |bit: u32| effective & (1 << bit) != 0;
    let missing: Vec<_> = needed
        .iter()
        .copied()
        .filter(|capability| !has(capability.bit()))
        .filter(|capability| !(*capability == Capability::Bpf && has(SYS_ADMIN)))
        .collect();
    if missing.is_empty() { None } else { Some(MissingCapabilities(missing)) }
}

/// Whether the agent's capabilities are those of a user namespace other than the node's: the kernel asks for some, such as
/// `CAP_BPF`, in the node's own.
pub(super) fn in_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !maps_every_user(&map))
}

/// The node's own maps every user to itself (`user_namespaces(7)`).
fn maps_every_user(map: &str) -> bool {
    map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
}

/// The effective set in `/proc/PID/status` (`proc(5)`).
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

impl fmt::Display for MissingCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the container lacks ")?;
        for (index, capability) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { " and " };
            write!(f, "{separator}{} ({})", capability.name(), capability.purpose())?;
        }
        f.write_str("; add it under securityContext.capabilities.add")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_effective_set() {
        assert_eq!(effective("Name:\tx\nCapEff:\t0000008000001000\nCapBnd:\t1\n"), Some(1 << 39 | 1 << 12));
        assert_eq!(effective("CapEff:\tnonsense\n"), None);
        assert_eq!(effective(""), None);
    }

    #[test]
    fn tells_the_nodes_user_namespace_from_another() {
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("         0     100000      65536\n"));
        assert!(!maps_every_user(""));
    }

    #[test]
    fn names_what_is_missing_and_what_for() {
        let programs = |effective| missing_in(effective, &Capability::FOR_PROGRAMS);
        assert_eq!(programs(1 << 39 | 1 << 12), None);
        assert_eq!(programs(1 << 21 | 1 << 12), None);
        let missing = programs(1 << 39).unwrap();
        assert_eq!(missing.0, [Capability::NetAdmin]);
        assert!(missing.to_string().contains("NET_ADMIN (to attach"), "{missing}");
        assert_eq!(programs(0).unwrap().0, [Capability::Bpf, Capability::NetAdmin]);
        let raw = |effective| missing_in(effective, &[Capability::NetRaw]);
        assert_eq!(raw(1 << 13), None);
        assert!(raw(!(1 << 13)).unwrap().to_string().contains("NET_RAW (to see"));
    }
}
