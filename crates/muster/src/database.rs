//! Where a shared database is, as flags.

use anyhow::{Context, Result};
use clap::Args;
use muster_store::{PostgresOptions, PostgresTls};
use std::path::PathBuf;

/// A PostgreSQL database that is served.
#[derive(Args)]
pub(crate) struct Database {
    /// The database: postgres://USER@HOST:PORT/DATABASE. `?sslmode=verify-full` verifies the
    /// server's certificate.
    #[arg(
        long,
        env = "MUSTER_POSTGRES",
        value_name = "URL",
        hide_env_values = true
    )]
    postgres: String,
    #[command(flatten)]
    proof: Proof,
    /// How many connections this process opens at most.
    #[arg(long, env = "MUSTER_POSTGRES_CONNECTIONS", value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    postgres_connections: u32,
}

impl Database {
    pub(crate) fn options(&self) -> Result<PostgresOptions> {
        let mut options = self.proof.options(&self.postgres)?;
        options.max_connections = self.postgres_connections;
        Ok(options)
    }
}

/// How we and a database prove to each other who we are.
#[derive(Args)]
pub(crate) struct Proof {
    /// A file with the password of the database. It is read anew for every connection, so that the
    /// password may be rotated.
    #[arg(long, env = "MUSTER_POSTGRES_PASSWORD_FILE", value_name = "FILE")]
    postgres_password_file: Option<PathBuf>,
    /// The certificate authorities that the database's certificate may come from; it is then
    /// required and must name the host.
    #[arg(long, env = "MUSTER_POSTGRES_CA_FILE", value_name = "FILE")]
    postgres_ca_file: Option<PathBuf>,
}

impl Proof {
    /// How to reach the database of a URL.
    pub(crate) fn options(&self, url: &str) -> Result<PostgresOptions> {
        let mut options = PostgresOptions::from_url(url).context("reading --postgres")?;
        options.password_file = self.postgres_password_file.clone();
        if let Some(file) = &self.postgres_ca_file {
            options = options.tls(PostgresTls::VerifyFull, Some(file));
        }
        Ok(options)
    }
}
