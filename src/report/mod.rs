//! Tables, CSV, JSON.
