//! The 64-bit FNV-1a hash, which never changes, unlike the standard hasher. It is no protection
//! against collisions.

/// The hash of no bytes.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Returns the hash continued with these bytes.
#[must_use]
pub fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
