//! One behaviour, two queues: every test of the suite runs over the file and over a real NATS
//! server.

mod killed;
mod nudge;
mod place;
mod suite;
mod worker;

/// Runs every named behaviour over both implementations.
macro_rules! over_both {
    ($($module:ident :: $behaviour:ident),* $(,)?) => {
        mod embedded {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() -> anyhow::Result<()> {
                    crate::$module::$behaviour(crate::place::Kind::Embedded).await
                }
            )*
        }
        mod nats {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() -> anyhow::Result<()> {
                    crate::$module::$behaviour(crate::place::Kind::Nats).await
                }
            )*
        }
    };
}

over_both!(
    suite::what_is_published_is_pulled_and_gone_when_it_is_acknowledged,
    suite::an_id_is_taken_once_while_it_is_pending_and_within_the_window,
    suite::a_message_of_a_lost_worker_comes_again_and_a_heartbeat_keeps_it,
    suite::a_delay_is_kept,
    suite::what_is_terminated_or_used_up_is_laid_aside_with_the_reason,
    suite::who_waits_is_woken,
    suite::thousands_of_messages_are_each_handled_by_many_workers,
    suite::a_restart_loses_nothing,
    suite::what_cannot_be_kept_is_refused_by_name,
    worker::handlers_run_at_once_within_bounds_and_failures_are_their_own,
    worker::a_long_handler_keeps_its_message,
    worker::the_end_waits_for_handlers_and_takes_nothing_more,
);
