//! The two resources that are followed.

use k8s_openapi::api::{core::v1::Service as ApiService, discovery::v1::EndpointSlice};

use super::{convert, follow::Followed};
use crate::core::cluster::{ClusterEvent, Service, Slice};

impl Followed for EndpointSlice {
    type Core = Slice;

    fn convert(&self) -> Option<(Slice, u32)> {
        convert::slice(self).map(|converted| (converted.value, converted.left_out))
    }

    fn listed(all: Vec<Slice>) -> ClusterEvent {
        ClusterEvent::SlicesListed(all)
    }

    fn written(one: Slice) -> ClusterEvent {
        ClusterEvent::SliceWritten(one)
    }

    fn removed(one: &Slice) -> ClusterEvent {
        ClusterEvent::SliceRemoved(one.name.clone())
    }

    fn unreadable(why: String) -> ClusterEvent {
        ClusterEvent::SlicesUnreadable(why)
    }
}

impl Followed for ApiService {
    type Core = Service;

    fn convert(&self) -> Option<(Service, u32)> {
        convert::service(self).map(|service| (service, 0))
    }

    fn listed(all: Vec<Service>) -> ClusterEvent {
        ClusterEvent::ServicesListed(all)
    }

    fn written(one: Service) -> ClusterEvent {
        ClusterEvent::ServiceWritten(one)
    }

    fn removed(one: &Service) -> ClusterEvent {
        ClusterEvent::ServiceRemoved(one.name.clone())
    }

    fn unreadable(why: String) -> ClusterEvent {
        ClusterEvent::ServicesUnreadable(why)
    }
}
