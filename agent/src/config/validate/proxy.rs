//! What `proxy` and `readiness` have to be to each other and to the rest. Pure.

use std::time::Duration;

use crate::config::{
    Config, ConfigError, FailAfter, MaxWait, Proxy, ProxyKind,
    duration::format,
    origin::{Origins, shorten},
};

/// A DNS label's length: longer than anybody types.
const LONGEST_NAME: usize = 63;

pub(super) fn check(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    let kind = config.proxy.kind;
    let kind_setting = || origins.setting("proxy.kind", kind.name());
    let (proxy, plain) = (&config.proxy, Proxy::default());
    // A configuration that is written out whole has every block, at its default.
    let given = [
        (ProxyKind::Envoy, proxy.envoy != plain.envoy),
        (ProxyKind::Haproxy, proxy.haproxy != plain.haproxy),
        (ProxyKind::Http, proxy.http != plain.http),
    ];
    for (other, _) in given.into_iter().filter(|(other, given)| *given && *other != kind) {
        let prefix = format!("proxy.{}.", other.name());
        if let Some(key) = origins.set_below(&prefix).next() {
            let setting = origins.setting(key, "…");
            return Err(ConfigError::OtherProxy { setting, block: other.name(), kind: kind_setting() });
        }
    }
    let http = &config.proxy.http;
    if kind == ProxyKind::Http && http.announce.is_none() && http.fail_readiness.is_none() {
        return Err(ConfigError::NoRequest { kind: kind_setting() });
    }
    check_upstream(config, origins)
}

fn check_upstream(config: &Config, origins: &Origins) -> Result<(), ConfigError> {
    for (name, url) in &config.readiness.upstream {
        let setting = || origins.setting("readiness.upstream", url);
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
            return Err(ConfigError::UpstreamName { setting: setting(), name: shorten(name) });
        }
        let own = config.server.address;
        let is_own = |ip: std::net::IpAddr| ip.is_loopback() || ip == own.ip();
        if url.addresses().iter().any(|address| address.port() == own.port() && is_own(address.ip())) {
            let server = origins.setting("server.address", own);
            return Err(ConfigError::UpstreamIsAgent { setting: setting(), name: name.clone(), server });
        }
    }
    Ok(())
}

/// What is allowed and probably not meant.
pub(super) fn warnings(config: &Config, bound: Duration) -> Vec<String> {
    let mut warnings = Vec::new();
    let tells = config.tells_the_server();
    if let FailAfter::Fixed(after) = config.readiness.fail_after {
        if !tells {
            warnings.push(
                "readiness.failAfter is without effect: there is neither a proxy.kind nor a readiness.upstream to fail it"
                    .to_owned(),
            );
        } else if after > bound {
            let auto = if config.drain.max_wait == MaxWait::Auto { ", by maxWait: auto" } else { "" };
            warnings.push(format!(
                "readiness.failAfter ({}) is longer than the bound of a drain ({}{auto}): readiness never fails",
                format(after),
                format(bound),
            ));
        }
    }
    let haproxy = &config.proxy.haproxy;
    if config.proxy.kind == ProxyKind::Haproxy
        && haproxy.announce_server.is_none()
        && haproxy.readiness_server.is_none()
    {
        warnings.push(
            "proxy.kind is haproxy, with neither proxy.haproxy.announceServer nor readinessServer: HAProxy is told \
             nothing"
                .to_owned(),
        );
    }
    warnings
}

impl Config {
    /// Whether there is anybody to tell, or any readiness to fail.
    pub fn tells_the_server(&self) -> bool {
        self.proxy.kind != ProxyKind::None || !self.readiness.upstream.is_empty()
    }
}
