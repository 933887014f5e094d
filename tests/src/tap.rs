//! An interface whose frames a test makes, and of which it decides how they lie in memory: network cards leave a packet's
//! headers and data in pieces, a pair of virtual interfaces does not.

use std::{
    fs::{File, OpenOptions},
    io::{IoSlice, Write},
    os::fd::AsRawFd,
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::Host;

/// `TUNSETIFF` in `linux/if_tun.h`: `_IOW('T', 202, int)`.
const SET_INTERFACE: libc::Ioctl = 0x4004_54ca;

/// An Ethernet interface of a host, and its other end in the test's hands. Gone when dropped.
#[derive(Debug)]
pub struct Tap {
    wire: File,
    hardware: [u8; 6],
}

// === impl Tap ===

impl Tap {
    /// Makes the interface and brings it up.
    ///
    /// # Errors
    ///
    /// When the kernel has no TUN driver (`CONFIG_TUN`), or the host an interface of that name.
    pub fn open(host: &Host, interface: &str) -> Result<Self> {
        let wire = host.run(|| open(interface)).with_context(|| format!("no tap interface in {}", host.role()))?;
        // Merging segments would bring their headers into one piece before anybody sees them.
        ethtool(host, &["-K", interface, "gro", "off"])?;
        host.ip(&format!("link set {interface} up\n"))?;
        Ok(Self { wire, hardware: host.hardware_address(interface)? })
    }

    /// The interface's hardware address.
    pub fn hardware(&self) -> [u8; 6] {
        self.hardware
    }

    /// Lets the interface receive a frame whose first bytes lie in one piece, the rest in another. It has been through
    /// the programs at the interface's ingress when this returns.
    ///
    /// # Errors
    ///
    /// When the kernel does not take it: both pieces need bytes, and the first all of the Ethernet header.
    pub fn receive_in_two(&self, frame: &[u8], in_first_piece: usize) -> Result<()> {
        let (first, second) = frame.split_at_checked(in_first_piece).context("the first piece is the whole")?;
        let written = (&self.wire)
            .write_vectored(&[IoSlice::new(first), IoSlice::new(second)])
            .with_context(|| format!("a frame of {} and {} bytes was not received", first.len(), second.len()))?;
        ensure!(written == frame.len(), "{written} of {} bytes were received", frame.len());
        Ok(())
    }
}

fn ethtool(host: &Host, arguments: &[&str]) -> Result<()> {
    let mut command: Command = host.command("ethtool")?;
    let output = command.args(arguments).output()?;
    ensure!(output.status.success(), "ethtool {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[expect(unsafe_code, reason = "no crate here makes a tap interface that takes frames in pieces")]
fn open(interface: &str) -> Result<File> {
    let wire = OpenOptions::new().read(true).write(true).open("/dev/net/tun").context("/dev/net/tun")?;
    // SAFETY: all fields are integers or arrays of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    ensure!(interface.len() < request.ifr_name.len(), "{interface} is too long a name");
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *place = libc::c_char::try_from(byte)?;
    }
    // A buffer for each piece (`tun_napi_alloc_frags`).
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_NAPI | libc::IFF_NAPI_FRAGS;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags)?;
    // SAFETY: the descriptor is open, and the request a valid `ifreq` that lives through the call.
    let result = unsafe { libc::ioctl(wire.as_raw_fd(), SET_INTERFACE, &raw mut request) };
    if result < 0 {
        return Err(std::io::Error::last_os_error()).with_context(|| format!("{interface} was not made"));
    }
    Ok(wire)
}
