//! Shared.
#![no_std]
