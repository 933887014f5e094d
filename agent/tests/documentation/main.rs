//! What the documentation says is so: its pages hang together, and what is made from the sources is as the sources say.

mod links;
mod markdown;
