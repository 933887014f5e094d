//! What the documentation tells people to type or to write is run, or says above it why it is not.
//!
//! A `console` block without a mark is run here, line by line, in a pod with an agent. `<!-- run by: FILE -->` names the test that
//! runs it, `<!-- not run: WHY -->` says why none does. A `yaml` block is given to whatever reads it: the agent, the chart, or the
//! lab's API server.

#[cfg(test)]
mod blocks;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod texts;
