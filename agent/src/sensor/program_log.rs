//! What the kernel programs have to say, on cold paths only: their first opaque packet, their first self-test. It goes to
//! the agent's own log at debug level. Nothing depends on it.

use aya::Ebpf;
use aya_log::EbpfLogger;
use tracing_log::LogTracer;

/// The programs' log.
pub(super) struct ProgramLog {
    logger: Option<EbpfLogger<LogTracer>>,
}

impl ProgramLog {
    /// Opens it, or says why it cannot be read.
    pub(super) fn open(ebpf: &mut Ebpf) -> Self {
        let logger = EbpfLogger::init_with_logger(ebpf, LogTracer::new());
        if let Err(error) = &logger {
            tracing::debug!(%error, "the kernel programs' log cannot be read; counting does not need it");
        }
        Self { logger: logger.ok() }
    }

    /// Passes on what has come since the last time.
    pub(super) fn forward(&mut self) {
        if let Some(logger) = &mut self.logger {
            logger.flush();
        }
    }
}
