//! The configuration: defaults, one YAML file, the environment and flags, each over the one before, read once when the
//! agent starts. The names of files' keys, environment variables and flags all come from [`Config`] itself.

mod addresses;
mod duration;
mod environment;
mod error;
mod fence;
mod file;
mod grace;
mod keys;
mod layer;
mod mode;
mod model;
mod networks;
mod origin;
mod place;
mod place_of_file;
mod ports;
mod probes;
mod proxy;
mod routing;
mod socket;
mod text;
mod url;
mod validate;

use std::path::{Path, PathBuf};

use self::layer::Layers;
pub use self::{
    duration::{DurationError, LONGEST, format as format_duration, parse as parse_duration},
    environment::variables,
    error::ConfigError,
    fence::{Fence, FenceCallers, FencePlace, FenceUrl},
    keys::{Key, all as keys, nearest},
    mode::Mode,
    model::{
        AfterEnd, Config, DEFAULT_GRACE, DEFAULT_PORT, DEFAULT_SOCKET, DEFAULT_STATE, Drain, HookFrom, Listeners, Log,
        LogFormat, MaxWait, Report, ReportSources, Sensor, SensorNetwork, SensorStrategy, Server, State, Watch,
    },
    networks::{Network, NetworkError},
    origin::{FileOrigin, Origin, Setting},
    ports::PortError,
    probes::Probes,
    proxy::{Envoy, FailAfter, HaProxy, Http, HttpRequest, Proxy, ProxyKind, Readiness, ServerName},
    routing::{LoadBalancer, Pod, Poll, Routing, RoutingSource},
    url::{Url, UrlError},
};

/// What the command line says about the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// Flags without their leading dashes, and their values as given: `("drain.quiet-period", "2s")`.
    pub values: Vec<(String, String)>,
}

/// The environment variable that names the configuration file where `--config` does not.
pub const FILE_VARIABLE: &str = "LASTSYN_CONFIG";

/// Reads the configuration: defaults, below the file, below the environment, below the flags. Nothing but the file is
/// read from outside of the arguments.
///
/// # Errors
/// The first mistake found, with its key and where it was said. See [`ConfigError`].
pub fn load(
    arguments: &Arguments,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let environment: Vec<_> = environment.into_iter().collect();
    let named = environment.iter().find(|(name, value)| name == FILE_VARIABLE && !value.is_empty());
    let path = match (&arguments.file, named) {
        (Some(path), _) => Some((path.as_path(), FileOrigin::Flag)),
        (None, Some((_, path))) => Some((Path::new(path), FileOrigin::Environment)),
        (None, None) => None,
    };
    let text = path.map(|(path, named_by)| file::read(path, named_by).map(|text| (path, text))).transpose()?;
    assemble(text.as_ref().map(|(path, text)| (*path, text.as_str())), &environment, &arguments.values)
}

/// [`load`] without the file system.
fn assemble(
    file: Option<(&Path, &str)>,
    environment: &[(String, String)],
    flags: &[(String, String)],
) -> Result<Config, ConfigError> {
    let mut layers = Layers::defaults();
    if let Some((path, text)) = file {
        layers.overlay(file::parse(path, text)?, path)?;
    }
    for (name, value) in environment {
        environment::apply_downward(&mut layers, name, value);
    }
    for (name, value) in environment {
        environment::apply(&mut layers, name, value)?;
    }
    for (flag, value) in flags {
        let origin = Origin::Flag(format!("--{flag}"));
        let key = keys::by_flag(flag).ok_or_else(|| ConfigError::UnknownKey {
            key: format!("--{flag}"),
            origin: origin.clone(),
            nearest: nearest(flag, keys().iter().map(Key::flag)).map_or_else(String::new, |near| format!("--{near}")),
        })?;
        layers.set(key, text::read(value), origin);
    }
    let (config, origins) = layers.build()?;
    validate::check(&config, &origins)?;
    Ok(config)
}

#[cfg(test)]
mod tests;
