//! What the Services say: W6, and the services that E6 asks about.

use std::collections::{BTreeMap, BTreeSet};

use super::super::cluster::{ResourceVersion, Service, ServiceName, ServiceProxy, TrafficPolicy};

/// The Services of the pod's namespace, as last heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    reading: Reading,
    /// A list has completed: whatever comes after it is news, also where they could not be read in between.
    listed: bool,
    services: BTreeMap<ServiceName, Service>,
}

#[derive(Clone, Debug, Default)]
enum Reading {
    /// Neither a list nor a refusal has come.
    #[default]
    Pending,
    Read,
    Unreadable(String),
}

/// Services whose policies or ports are others now.
#[derive(Debug, Default)]
pub(super) struct Affected {
    pub(super) services: BTreeSet<ServiceName>,
    /// It was a change, and not the first thing that was heard of them.
    pub(super) is_news: bool,
}

// === impl Policies ===

impl Policies {
    /// A list. After a gap a Service whose version differs may have had any policy in between.
    pub(super) fn list(&mut self, services: Vec<Service>) -> Affected {
        let listed: BTreeMap<_, _> = services.into_iter().map(|service| (service.name.clone(), service)).collect();
        let names: BTreeSet<_> = self.services.keys().chain(listed.keys()).cloned().collect();
        let differs = |name: &ServiceName| {
            let (before, after) = (self.services.get(name), listed.get(name));
            before.map(|service| &service.version) != after.map(|service| &service.version)
        };
        let changed = names.into_iter().filter(differs).collect();
        let is_news = std::mem::replace(&mut self.listed, true);
        self.services = listed;
        self.reading = Reading::Read;
        Affected { services: changed, is_news }
    }

    pub(super) fn write(&mut self, service: Service) -> Affected {
        let name = service.name.clone();
        let before = self.services.insert(name.clone(), service);
        let same = before.as_ref().map(routing_of) == self.services.get(&name).map(routing_of);
        self.affected(name, same)
    }

    pub(super) fn remove(&mut self, name: ServiceName) -> Affected {
        let same = self.services.remove(&name).is_none();
        self.affected(name, same)
    }

    pub(super) fn unreadable(&mut self, why: String) {
        self.reading = Reading::Unreadable(why);
    }

    /// Whether the Services were listed, or cannot be: until then nothing is known of `Local`.
    pub(super) fn are_settled(&self) -> bool {
        !matches!(self.reading, Reading::Pending)
    }

    pub(super) fn why_unreadable(&self) -> Option<&str> {
        match &self.reading {
            Reading::Unreadable(why) => Some(why),
            Reading::Pending | Reading::Read => None,
        }
    }

    /// Some policy of the Service is `Local`, as far as is known.
    pub(super) fn local(&self, name: &ServiceName) -> bool {
        let local = |service: &Service| [service.external, service.internal].contains(&TrafficPolicy::Local);
        self.get(name).is_some_and(local)
    }

    pub(super) fn get(&self, name: &ServiceName) -> Option<&Service> {
        self.services.get(name)
    }

    pub(super) fn versions(&self) -> impl Iterator<Item = (&ServiceName, &ResourceVersion)> {
        self.services.iter().map(|(name, service)| (name, &service.version))
    }

    fn affected(&self, name: ServiceName, same: bool) -> Affected {
        let services = if same { BTreeSet::new() } else { BTreeSet::from([name]) };
        Affected { services, is_news: self.listed }
    }
}

/// What a node's rules depend on. `healthCheckNodePort` is not in them: it is asked, it does not route.
fn routing_of(service: &Service) -> (TrafficPolicy, TrafficPolicy, ServiceProxy, &str) {
    let Service { external, internal, proxy, ports, .. } = service;
    (*external, *internal, *proxy, ports)
}
