//! Which capabilities the agent has, by asking the kernel before anything fails for want of one.

use std::fmt;

/// A capability that the sensor needs, and what for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_BPF` (kernel 5.8): load programs and maps.
    Bpf,
    /// `CAP_NET_ADMIN`: attach programs to interfaces.
    NetAdmin,
}

/// The needed capabilities that the agent lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingCapabilities(pub Vec<Capability>);

/// `CAP_SYS_ADMIN` in `linux/capability.h`: stands for `CAP_BPF` on kernels that lack it, and beside it.
const SYS_ADMIN: u32 = 21;

impl Capability {
    const ALL: [Self; 2] = [Self::Bpf, Self::NetAdmin];

    /// Its bit in `linux/capability.h`.
    const fn bit(self) -> u32 {
        match self {
            Self::Bpf => 39,
            Self::NetAdmin => 12,
        }
    }

    /// Its name as container runtimes spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "BPF",
            Self::NetAdmin => "NET_ADMIN",
        }
    }

    /// What the agent needs it for.
    pub const fn purpose(self) -> &'static str {
        match self {
            Self::Bpf => "to load the program that counts SYNs",
            Self::NetAdmin => "to attach it to the pod's interfaces",
        }
    }
}

/// What the agent lacks; `None` if it has all, or its capabilities could not be read (then loading tells).
pub fn missing_capabilities() -> Option<MissingCapabilities> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    missing_in(effective(&status)?)
}

fn missing_in(effective: u64) -> Option<MissingCapabilities> {
    let has = |bit: u32| effective & (1 << bit) != 0;
    let missing: Vec<_> = Capability::ALL
        .into_iter()
        .filter(|capability| !has(capability.bit()))
        .filter(|capability| !(*capability == Capability::Bpf && has(SYS_ADMIN)))
        .collect();
    if missing.is_empty() { None } else { Some(MissingCapabilities(missing)) }
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
    fn names_what_is_missing_and_what_for() {
        assert_eq!(missing_in(1 << 39 | 1 << 12), None);
        assert_eq!(missing_in(1 << 21 | 1 << 12), None);
        let missing = missing_in(1 << 39).unwrap();
        assert_eq!(missing.0, [Capability::NetAdmin]);
        assert!(missing.to_string().contains("NET_ADMIN (to attach"), "{missing}");
        assert_eq!(missing_in(0).unwrap().0, [Capability::Bpf, Capability::NetAdmin]);
    }
}
