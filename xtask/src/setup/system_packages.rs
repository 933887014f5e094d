//! Programs that come from the system's package manager.

use anyhow::Result;

use super::apt;
use crate::process;

/// What programs are for. Each purpose includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Running `cargo xtask demo`.
    Demo,
    /// Running the tests.
    Test,
    /// Finding out why one of them fails.
    Debugging,
}

/// A Debian package, and one program of it by which its presence is known.
struct Package {
    name: &'static str,
    program: &'static str,
    purpose: Purpose,
    why: &'static str,
}

static PACKAGES: [Package; 13] = [
    Package { name: "haproxy", program: "haproxy", purpose: Purpose::Demo, why: "the server in the pod" },
    Package { name: "iproute2", program: "ip", purpose: Purpose::Demo, why: "network namespaces and links of the lab" },
    Package { name: "nftables", program: "nft", purpose: Purpose::Demo, why: "forwarding as a node's proxy does it" },
    Package { name: "conntrack", program: "conntrack", purpose: Purpose::Demo, why: "the node's connection table" },
    Package { name: "util-linux", program: "nsenter", purpose: Purpose::Demo, why: "servers inside a namespace" },
    Package { name: "bpftool", program: "bpftool", purpose: Purpose::Test, why: "which programs are attached" },
    Package { name: "iptables", program: "iptables", purpose: Purpose::Test, why: "kube-proxy's older mode" },
    Package { name: "libcap2-bin", program: "capsh", purpose: Purpose::Test, why: "running without capabilities" },
    Package { name: "skopeo", program: "skopeo", purpose: Purpose::Test, why: "the image, read by others" },
    Package { name: "umoci", program: "umoci", purpose: Purpose::Test, why: "the image, unpacked by others" },
    Package { name: "chromium", program: "chromium", purpose: Purpose::Test, why: "the report's page, as it is shown" },
    Package {
        name: "ethtool",
        program: "ethtool",
        purpose: Purpose::Debugging,
        why: "offloads and counters of a link",
    },
    Package { name: "tcpdump", program: "tcpdump", purpose: Purpose::Debugging, why: "packets of a link" },
];

/// Installs what `purpose` needs and the machine does not have.
pub(crate) fn ensure(purpose: Purpose) -> Result<()> {
    ensure_of(PACKAGES.iter().filter(|package| package.purpose <= purpose))
}

/// The same for these programs of the list.
pub(crate) fn ensure_programs(programs: &[&str]) -> Result<()> {
    ensure_of(PACKAGES.iter().filter(|package| programs.contains(&package.program)))
}

fn ensure_of(needed: impl Iterator<Item = &'static Package>) -> Result<()> {
    let missing: Vec<_> = needed.filter(|package| process::find_program(package.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for Package { name, program, why, .. } in &missing {
        eprintln!("Missing: {program} ({why}), from the package {name}");
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    apt::install(&names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_asked_for_once_and_in_the_order_of_purposes() {
        for (index, package) in PACKAGES.iter().enumerate() {
            assert!(PACKAGES[index + 1..].iter().all(|other| other.program != package.program), "{}", package.program);
        }
        assert!(PACKAGES.is_sorted_by_key(|package| package.purpose));
    }
}
