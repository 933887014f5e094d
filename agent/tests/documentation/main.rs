//! What the documentation says is so: its pages hang together, and what is made from the sources is as the sources say.

#[cfg(test)]
mod configuration;
#[cfg(test)]
mod links;
#[cfg(test)]
mod markdown;
#[cfg(test)]
mod model;
#[cfg(test)]
mod warnings;
