//! Random settings, and random things that happen.

use proptest::prelude::*;

use super::truth::{ms, port};
use crate::core::{
    class::Class,
    listener::Family,
    settings::{Settings, Watch},
};

const PORTS: [u16; 3] = [80, 443, 8080];

/// Something that happens.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Time passes, in microseconds.
    Wait(u64),
    /// The clock comes before it is due, by some thousandths of what is left.
    Early(u32),
    Hook,
    Leave(u64),
    Terminate,
    Look,
    Syn(Class, u16, Family),
    Connect(u16, Family),
    Drop(u16, Family),
    Opaque(Option<u16>, Family),
    Begin(u16, Family),
    Complete(u64),
    SendCookie(u16, Family),
    TakeCookie,
    Open(u16),
    Close(u16),
    Queue(u16, u64),
    Established(u16, u64),
    BreakSensor,
    MendSensor,
    BreakSockets(bool),
    BreakCounters(bool),
    Address(Family, bool),
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let port = || prop::sample::select(&PORTS[..]);
    let family = || prop::sample::select(&Family::ALL[..]);
    let class = || prop::sample::select(&Class::ALL[..]);
    prop_oneof![
        12 => (0_u64..3_000_000).prop_map(Step::Wait),
        4 => (0_u32..1000).prop_map(Step::Early),
        3 => Just(Step::Hook),
        1 => (1_u64..6).prop_map(Step::Leave),
        1 => Just(Step::Terminate),
        2 => Just(Step::Look),
        4 => (class(), port(), family()).prop_map(|(class, port, family)| Step::Syn(class, port, family)),
        6 => (port(), family()).prop_map(|(port, family)| Step::Connect(port, family)),
        1 => (port(), family()).prop_map(|(port, family)| Step::Drop(port, family)),
        1 => (prop::option::of(port()), family()).prop_map(|(port, family)| Step::Opaque(port, family)),
        2 => (port(), family()).prop_map(|(port, family)| Step::Begin(port, family)),
        2 => (1_u64..8).prop_map(Step::Complete),
        1 => (port(), family()).prop_map(|(port, family)| Step::SendCookie(port, family)),
        1 => Just(Step::TakeCookie),
        1 => port().prop_map(Step::Open),
        1 => port().prop_map(Step::Close),
        1 => (port(), 0_u64..2).prop_map(|(port, queue)| Step::Queue(port, queue)),
        1 => (port(), 0_u64..4).prop_map(|(port, count)| Step::Established(port, count)),
        1 => Just(Step::BreakSensor),
        1 => Just(Step::MendSensor),
        1 => any::<bool>().prop_map(Step::BreakSockets),
        1 => any::<bool>().prop_map(Step::BreakCounters),
        1 => (family(), any::<bool>()).prop_map(|(family, has)| Step::Address(family, has)),
    ]
}

pub(super) fn any_settings() -> impl Strategy<Value = Settings> {
    let watch = prop_oneof![
        Just(Watch::Auto { exclude: Vec::new() }),
        Just(Watch::Auto { exclude: vec![port(8080)] }),
        Just(Watch::Ports(vec![port(80), port(443)])),
    ];
    (watch, 1_u64..6000, 0_u64..9000, 0_u64..6000, 0_u64..6000, prop::option::of(0_u64..4), 0_u64..12_000).prop_map(
        |(watch, quiet, retry, floor, grace, connections, reserve)| Settings {
            watch,
            quiet_period: ms(quiet),
            retry_wait: ms(retry),
            min_wait: ms(floor),
            max_wait: ms(6000),
            handshake_grace: ms(grace),
            exit_at_connections: connections,
            routing: None,
            no_routing: crate::core::settings::NoRouting::Off,
            restart_guard: None,
            fail_after: None,
            stop_reserve: ms(reserve),
            linger: ms(0),
        },
    )
}
