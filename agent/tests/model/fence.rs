//! The fence: it writes a marker after it was asked, watches the node for its effect, writes a second, and tells.

use std::sync::Arc;

use lastsyn::core::{
    cluster::FenceRequest,
    confirm::{Confirmations, FenceProgress},
    listener::Family,
};

use crate::{
    agent::{at, node},
    api::{Log, Value, Write},
    kube_proxy::{KubeProxy, Rules},
    setting::{Effect, Setting},
};

/// How far it is with the newest request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fence {
    request: u8,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    #[default]
    Idle,
    /// It was asked.
    Asked,
    /// So many markers are written, the last of them this; its connection is with this process since before the first.
    Written { markers: u8, last: u8, process: u8 },
}

impl Fence {
    /// Whether it is to be asked.
    pub(crate) fn is_due(core: &Confirmations, now: u8) -> bool {
        core.fence_due(Family::V4).is_some_and(|due| due <= at(now))
    }

    pub(crate) fn ask(&mut self, core: &mut Arc<Confirmations>, now: u8) {
        self.request += 1;
        self.stage = Stage::Asked;
        Arc::make_mut(core).fence_requested(FenceRequest(self.request.into()), at(now));
    }

    /// Whether it can write a marker: the first, or the second after it saw the first one's effect.
    pub(crate) fn can_write(self, setting: &Setting, proxy: &KubeProxy, rules: Rules) -> bool {
        match self.stage {
            Stage::Idle => false,
            Stage::Asked => proxy.up,
            Stage::Written { markers, .. } => markers < setting.markers() && self.sees(setting, proxy, rules),
        }
    }

    pub(crate) fn write(&mut self, log: &mut Log, proxy: &KubeProxy, now: u8) {
        let last = next_marker(log);
        log.0.push(Write { value: Value::Marker(last), tick: now });
        self.stage = match self.stage {
            Stage::Written { markers, process, .. } => Stage::Written { markers: markers + 1, last, process },
            Stage::Idle | Stage::Asked => Stage::Written { markers: 1, last, process: proxy.process },
        };
    }

    /// Whether it sees the last marker's effect, and all were written: then it can tell.
    pub(crate) fn can_tell(self, setting: &Setting, proxy: &KubeProxy, rules: Rules) -> bool {
        let all = matches!(self.stage, Stage::Written { markers, .. } if markers == setting.markers());
        all && self.sees(setting, proxy, rules)
    }

    /// It tells the agent, whose request it answers at once.
    pub(crate) fn tell(self, core: &mut Arc<Confirmations>, now: u8) {
        Arc::make_mut(core).fence(&FenceProgress {
            request: FenceRequest(self.request.into()),
            node: node(),
            family: Family::V4,
            stood_at: at(now),
            received_at: at(now),
        });
    }

    /// The connection stands, and the last marker's effect shows.
    fn sees(self, setting: &Setting, proxy: &KubeProxy, rules: Rules) -> bool {
        let Stage::Written { last, process, .. } = self.stage else { return false };
        let shown = match setting.effect {
            Effect::Rules => rules.marker,
            Effect::Port => proxy.port,
        };
        proxy.up && proxy.process == process && shown == last
    }
}

/// A marker that was never written.
pub(crate) fn next_marker(log: &Log) -> u8 {
    let markers = log.0.iter().filter_map(|write| match write.value {
        Value::Marker(marker) => Some(marker),
        Value::Slice(..) => None,
    });
    markers.max().unwrap_or(0) + 1
}
