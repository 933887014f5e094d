//! What the configuration comes to, for the core and for the sensor.

use crate::{
    config::{Config, FailAfter as FailAfterConfig, SensorStrategy, Watch as WatchConfig},
    core::{
        listener::Port,
        phase::FailAfter,
        settings::{NoRouting, RoutingSettings, Settings, Watch},
        verdict::Strategy,
    },
    sensor::Choice,
};

/// Which sensor may be taken.
pub(super) fn choice(strategy: SensorStrategy) -> Choice {
    match strategy {
        SensorStrategy::Auto => Choice::Auto,
        SensorStrategy::Tcx => Choice::Only(Strategy::Tcx),
        SensorStrategy::Cgroup => Choice::Only(Strategy::Cgroup),
        SensorStrategy::Clsact => Choice::Only(Strategy::Clsact),
        SensorStrategy::Packet => Choice::Only(Strategy::Packet),
        SensorStrategy::Counters => Choice::Only(Strategy::Counters),
    }
}

/// What the core decides by. `routing` is what it is to know of the cluster, or why nothing.
pub(super) fn settings(config: &Config, routing: Result<RoutingSettings, NoRouting>) -> Settings {
    let watched = routing.is_ok();
    let own = [config.server.address.port()].into_iter().chain(config.proxy.own_ports());
    let own = own.filter_map(|port| Port::try_from(port).ok());
    let tells = config.tells_the_server();
    Settings {
        watch: match &config.listeners.watch {
            WatchConfig::Auto => Watch::Auto { exclude: config.listeners.exclude.iter().copied().chain(own).collect() },
            WatchConfig::Ports(ports) => Watch::Ports(ports.clone()),
        },
        quiet_period: config.drain.quiet_period,
        retry_wait: config.drain.retry_wait,
        min_wait: config.drain.min_wait,
        max_wait: config.drain.bound(),
        handshake_grace: config.drain.handshake_grace,
        exit_at_connections: config.drain.exit_at_connections.map(u64::from),
        no_routing: routing.as_ref().err().copied().unwrap_or_default(),
        routing: routing.ok(),
        // Nothing depends on it where nobody is told anything, and nothing could ever show that the pod is not terminating.
        restart_guard: Some(config.drain.restart_guard).filter(|guard| (watched || tells) && !guard.is_zero()),
        fail_after: tells.then_some(match config.readiness.fail_after {
            FailAfterConfig::Auto => FailAfter::Auto,
            FailAfterConfig::Never => FailAfter::Never,
            FailAfterConfig::Fixed(after) => FailAfter::Fixed(after),
        }),
        stop_reserve: config.drain.stop_reserve,
        linger: config.after_end.linger,
    }
}
