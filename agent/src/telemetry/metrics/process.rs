//! What the agent costs its pod, by the names that Prometheus' own clients use.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use rustix::time::{ClockId, clock_gettime};

/// The metrics of the process.
pub(super) struct ProcessMetrics {
    processor: Counter<f64, AtomicU64>,
    resident: Gauge,
    files: Gauge,
}

impl ProcessMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix("process");
        let processor = Counter::default();
        registry.register_with_unit("cpu", "Processor time of the agent", Unit::Seconds, processor.clone());
        let resident = Gauge::default();
        registry.register_with_unit("resident_memory", "Memory of the agent", Unit::Bytes, resident.clone());
        let files = Gauge::default();
        registry.register("open_fds", "Open file descriptors of the agent", files.clone());
        Self { processor, resident, files }
    }

    /// Reads what the kernel says now. What it does not say stays as it was.
    pub(super) fn take(&self) {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        if let Ok(time) = std::time::Duration::try_from(time) {
            self.processor.inner().store(time.as_secs_f64().to_bits(), Ordering::Relaxed);
        }
        if let Some(bytes) = fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident) {
            self.resident.set(bytes);
        }
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            // Less the directory's own.
            self.files.set(i64::try_from(files.count().saturating_sub(1)).unwrap_or(i64::MAX));
        }
    }
}

/// `VmRSS` in bytes, of `/proc/PID/status` (`proc_pid_status(5)`), which has it in units of 1024.
fn resident(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(resident("VmHWM:\t  9000 kB\nVmRSS:\t    5132 kB\nThreads:\t2\n"), Some(5132 * 1024));
        assert_eq!(resident("Threads:\t2\n"), None);
    }
}
