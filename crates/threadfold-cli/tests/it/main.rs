//! The program from outside, and what it is made of.

#![cfg(test)]

mod commands;
mod docs;
mod doctor;
mod edl;
mod imports;
mod mcp;
mod proxy;
mod relay;
mod report;
#[cfg(unix)]
mod run;
mod status;
mod world;
mod writer;
