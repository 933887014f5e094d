//! What the values have to be to each other. Pure.

mod proxy;

use std::{collections::BTreeSet, time::Duration};

use lastsyn_common::counters::{MOST_IGNORED, MOST_PROBED};

use super::{
    Config, ConfigError, DEFAULT_GRACE, MaxWait, Network, RoutingSource, Watch,
    duration::format,
    origin::{Origins, Setting},
};
use crate::core::listener::{Port, Protocol};

pub(super) fn check(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    check_listeners(config, origins)?;
    check_routing(config, origins)?;
    proxy::check(config, origins)?;
    check_drain(config, origins)
}

fn check_routing(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    let poll = &config.routing.poll;
    for (key, value) in [("routing.poll.interval", poll.interval), ("routing.poll.timeout", poll.timeout)] {
        if value.is_zero() {
            return Err(ConfigError::Zero { setting: origins.setting(key, format(value)) });
        }
    }
    if poll.max_rate == 0 {
        return Err(ConfigError::Zero { setting: origins.setting("routing.poll.maxRate", 0) });
    }
    if config.routing.source == RoutingSource::Fence && config.routing.fence.place().is_none() {
        return Err(ConfigError::NoFence { setting: origins.setting("routing.source", "fence") });
    }
    let fence = &config.fence;
    for (key, value) in [("fence.spacing", fence.spacing), ("fence.pollInterval", fence.poll_interval)] {
        if value.is_zero() {
            return Err(ConfigError::Zero { setting: origins.setting(key, format(value)) });
        }
    }
    if fence.max_rate == 0 {
        return Err(ConfigError::Zero { setting: origins.setting("fence.maxRate", 0) });
    }
    Ok(())
}

fn check_listeners(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    let exclude = &config.listeners.exclude;
    let excluded_by = || origins.setting("listeners.exclude", list(exclude));
    no_port_twice(exclude, excluded_by)?;
    let probed: BTreeSet<_> = config.listeners.probes.listed().iter().map(|probe| probe.port).collect();
    if probed.len() > MOST_PROBED as usize {
        let setting = origins.setting("listeners.probes", format_args!("{} ports", probed.len()));
        return Err(ConfigError::TooManyProbed { setting, count: probed.len() });
    }
    check_ignored(&config.listeners.ignore_sources, origins)?;
    let Watch::Ports(watch) = &config.listeners.watch else { return Ok(()) };
    let watched_by = || origins.setting("listeners.watch", list(watch));
    if watch.is_empty() {
        return Err(ConfigError::NothingWatched { setting: watched_by() });
    }
    no_port_twice(watch, watched_by)?;
    let tcp = || watch.iter().filter(|port| port.protocol() == Protocol::Tcp);
    let address = config.server.address;
    if let Some(&port) = tcp().find(|port| port.number() == address.port()) {
        let server = origins.setting("server.address", address);
        return Err(ConfigError::OwnPortWatched { setting: watched_by(), port, server });
    }
    if let Some(&port) = tcp().find(|port| config.proxy.own_ports().contains(&port.number())) {
        let admin = origins.setting("proxy.envoy.admin", &config.proxy.envoy.admin);
        return Err(ConfigError::AdminPortWatched { setting: watched_by(), port, admin });
    }
    match watch.iter().find(|port| exclude.contains(port)) {
        Some(&port) => Err(ConfigError::WatchedAndExcluded { port, watch: watched_by(), exclude: excluded_by() }),
        None => Ok(()),
    }
}

fn check_ignored(networks: &[Network], origins: &Origins) -> Result<(), ConfigError> {
    let v4 = networks.iter().filter(|network| network.address().is_ipv4()).count();
    let count = v4.max(networks.len() - v4);
    if u32::try_from(count).is_ok_and(|count| count <= MOST_IGNORED) {
        return Ok(());
    }
    let setting = origins.setting("listeners.ignoreSources", format_args!("{} networks", networks.len()));
    Err(ConfigError::TooManyNetworks { setting, count })
}

fn no_port_twice(ports: &[Port], setting: impl Fn() -> Box<Setting>) -> Result<(), ConfigError> {
    let mut seen = BTreeSet::new();
    match ports.iter().find(|port| !seen.insert(**port)) {
        Some(&port) => Err(ConfigError::DuplicatePort { setting: setting(), port }),
        None => Ok(()),
    }
}

fn check_drain(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    let drain = &config.drain;
    let quiet = || origins.setting("drain.quietPeriod", format(drain.quiet_period));
    if drain.quiet_period.is_zero() {
        return Err(ConfigError::QuietPeriodZero { setting: quiet() });
    }
    let (bound, bound_setting) = match drain.max_wait {
        MaxWait::Fixed(bound) => (bound, origins.setting("drain.maxWait", format(bound))),
        // By the pod's own grace period, which is not known yet.
        MaxWait::Auto if config.routing.enabled => return Ok(()),
        MaxWait::Auto => {
            let left = drain.left_of(DEFAULT_GRACE);
            if left.is_zero() {
                let reserve = origins.setting("drain.stopReserve", format(drain.stop_reserve));
                return Err(ConfigError::NothingLeft { reserve });
            }
            (left, origins.setting("drain.maxWait", format_args!("auto = {}", format(left))))
        }
    };
    if drain.quiet_period > bound {
        return Err(ConfigError::QuietPeriodAboveMaxWait { quiet: quiet(), bound: bound_setting });
    }
    if drain.min_wait > bound {
        let floor = origins.setting("drain.minWait", format(drain.min_wait));
        return Err(ConfigError::MinWaitAboveMaxWait { floor, bound: bound_setting });
    }
    Ok(())
}

impl Config {
    /// What is allowed and probably not meant, a sentence each, in a pod with this grace period, as far as it is known.
    pub fn warnings(&self, grace: Option<Duration>) -> Vec<String> {
        let bound = self.drain.bound_within(grace);
        let mut warnings = match grace {
            Some(grace) => self.drain.grace_warnings(grace),
            None => self.without_grace(bound),
        };
        let retry = self.drain.retry_wait;
        if retry > bound {
            warnings.push(format!(
                "drain.retryWait ({}) is longer than the bound of a drain ({}): a drain in which a SYN was dropped \
                 unanswered ends at its bound",
                format(retry),
                format(bound),
            ));
        }
        if self.server.address.port() == 0 {
            warnings.push(format!(
                "server.address ({}) leaves the port to the kernel: `lastsyn drain` finds the agent only if it is told",
                self.server.address
            ));
        }
        warnings.extend(proxy::warnings(self, bound));
        warnings
    }

    fn without_grace(&self, bound: Duration) -> Vec<String> {
        let drain = &self.drain;
        if drain.max_wait != MaxWait::Auto || drain.left_of(DEFAULT_GRACE) >= drain.shortest() {
            return Vec::new();
        }
        vec![format!(
            "until the pod's grace period has been read, drains last at most {}: drain.stopReserve ({}) leaves less of \
             Kubernetes' default of {} than the shortest drain takes ({})",
            format(bound),
            format(drain.stop_reserve),
            format(DEFAULT_GRACE),
            format(drain.shortest()),
        )]
    }
}

fn list(ports: &[Port]) -> String {
    let ports: Vec<_> = ports.iter().map(Port::to_string).collect();
    format!("[{}]", ports.join(", "))
}
