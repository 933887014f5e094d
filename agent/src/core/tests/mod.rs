//! Every rule in a scripted world: a virtual clock, and evidence made from what the script says is true.

mod bound;
mod callers;
mod connections;
mod counted;
mod floor;
mod handshakes;
mod properties;
mod pure;
mod quiet;
mod restart;
mod retry;
mod sensor;
mod steps;
mod stop;
mod timing;
mod truth;
mod watched;
mod witness;
mod world;
