//! A grid.
