//! The namespace's interfaces and addresses, over rtnetlink.

use std::net::IpAddr;

use futures_util::TryStreamExt;
use netlink_packet_route::{
    address::AddressAttribute,
    link::{LinkAttribute, LinkFlags, LinkLayerType},
};

use crate::core::event::ByFamily;

/// Asks for the interfaces and addresses of the namespace in which it was made.
#[derive(Clone, Debug)]
pub struct Interfaces {
    handle: rtnetlink::Handle,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The kernel's number for it, never used twice in a namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// What a frame on it begins with.
    pub link_layer: LinkLayer,
    /// Whether it can receive.
    pub up: bool,
}

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// An Ethernet header.
    Ethernet,
    /// An Ethernet header, and the frame never leaves the pod.
    Loopback,
    /// Something else, by its `ARPHRD_` number.
    Other(u16),
}

/// Netlink did not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No socket.
    #[error("cannot open a netlink socket to list the pod's interfaces: {0}")]
    Socket(#[source] std::io::Error),
    /// No answer.
    #[error("the kernel has not answered for {0:?} when asked for the pod's interfaces or addresses")]
    Silent(std::time::Duration),
    /// No list.
    #[error("the kernel did not list the pod's interfaces or addresses: {0}")]
    List(#[source] rtnetlink::Error),
}

impl Interfaces {
    /// Opens the socket, in the caller's namespace.
    ///
    /// # Errors
    ///
    /// If there is no netlink socket to be had.
    pub fn open() -> Result<Self, InterfaceError> {
        let (connection, handle, _) = rtnetlink::new_connection().map_err(InterfaceError::Socket)?;
        tokio::spawn(connection);
        Ok(Self { handle })
    }

    /// All interfaces.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn list(&self) -> Result<Vec<Interface>, InterfaceError> {
        let messages: Vec<_> = self.handle.link().get().execute().try_collect().await.map_err(InterfaceError::List)?;
        let interfaces = messages.into_iter().filter_map(|message| {
            let name = message.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::IfName(name) => Some(name.clone()),
                _ => None,
            })?;
            Some(Interface {
                index: message.header.index,
                name,
                link_layer: match message.header.link_layer_type {
                    LinkLayerType::Ether => LinkLayer::Ethernet,
                    LinkLayerType::Loopback => LinkLayer::Loopback,
                    other => LinkLayer::Other(other.into()),
                },
                up: message.header.flags.contains(LinkFlags::Up),
            })
        });
        Ok(interfaces.collect())
    }

    /// Every address, loopback and link-local ones included.
    ///
    /// # Errors
    ///
    /// If the kernel refuses.
    pub async fn addresses(&self) -> Result<Vec<IpAddr>, InterfaceError> {
        let messages: Vec<_> =
            self.handle.address().get().execute().try_collect().await.map_err(InterfaceError::List)?;
        let addresses = messages.into_iter().filter_map(|message| {
            let local = message.attributes.iter().find_map(|attribute| match attribute {
                AddressAttribute::Local(address) => Some(*address),
                _ => None,
            });
            local.or_else(|| {
                message.attributes.iter().find_map(|attribute| match attribute {
                    AddressAttribute::Address(address) => Some(*address),
                    _ => None,
                })
            })
        });
        Ok(addresses.collect())
    }
}

/// The families in which the pod can be reached: it has an address that is neither loopback nor link-local.
pub fn families(addresses: &[IpAddr]) -> ByFamily<bool> {
    ByFamily {
        v4: addresses
            .iter()
            .any(|address| matches!(address, IpAddr::V4(v4) if !v4.is_loopback() && !v4.is_link_local())),
        v6: addresses
            .iter()
            .any(|address| matches!(address, IpAddr::V6(v6) if !v6.is_loopback() && !v6.is_unicast_link_local())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_link_local_addresses_are_no_way_in() {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(
            families(&parse(&["127.0.0.1", "::1", "fe80::1", "169.254.3.4"])),
            ByFamily { v4: false, v6: false }
        );
        assert_eq!(families(&parse(&["10.0.0.1", "::1"])), ByFamily { v4: true, v6: false });
        assert_eq!(families(&parse(&["127.0.0.1", "fd00::1"])), ByFamily { v4: false, v6: true });
    }
}
