//! Compacting a host's own messages: the compactor observes their shadows and returns a plan.

use std::sync::Arc;

use super::{compact::Work, value::Compactor};
use crate::{
    compaction::Result,
    drive::Models,
    foreign::{self, HostMessage, HostPlan},
    log::CompactionRecord,
    message::Usage,
    strategy::Brief,
};

/// A planned compaction of a host's own messages.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlannedHost {
    /// The edit, in indexes of the host's messages.
    pub plan: HostPlan,
    /// What was done and what it cost. Its own plan is for the shadows of the messages.
    pub record: CompactionRecord,
}

impl Compactor {
    /// Reads the new messages of a host's thread since the last call, like
    /// [`observe`](Self::observe). Old messages are compared by their texts, and nothing of them is
    /// copied.
    ///
    /// ```
    /// use threadfold::{Compactor, Role};
    ///
    /// let mut thread = vec![(Role::User, "Fix the parser.".to_owned())];
    /// let mut compactor = Compactor::default();
    /// compactor.observe_host(&thread);
    /// let before = compactor.context_tokens();
    /// thread.push((Role::Assistant, "Fine.".to_owned()));
    /// compactor.observe_host(&thread);
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn observe_host<M: HostMessage>(&mut self, messages: &[M]) {
        let shadows = self.live.thread.as_ref().map(|thread| thread.messages().as_slice());
        let read = shadows.filter(|shadows| {
            let pairs = shadows.iter().zip(messages);
            shadows.len() <= messages.len() && { pairs }
                .all(|(shadow, message)| foreign::is_shadow_of(shadow, message))
        });
        match read.map(<[_]>::len).and_then(|read| messages.get(read..)) {
            Some(new) => self.append(&foreign::shadows(new)),
            None => self.read_again(&foreign::shadows(messages)),
        }
    }

    /// Plans a compaction of a host's own messages to at most the target of the brief, like
    /// [`compact`](Self::compact). The messages are not changed: carry the plan out with
    /// [`HostPlan::apply`], before the thread changes otherwise. The compactor then continues from
    /// the compacted thread. If the plan is not carried out, the next observation reads the thread
    /// again.
    ///
    /// The future may be dropped at any point; the compactor then still knows the old thread.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use threadfold::{Compactor, Role, drive::Models};
    ///
    /// let said = |text: &str| (Role::Assistant, text.repeat(200));
    /// let mut thread = vec![(Role::User, "Read a.rs.".to_owned()), said("I read. "), said("On. ")];
    /// let last = thread[2].1.as_ptr();
    /// let mut compactor = Compactor::default();
    /// let planned = block_on(compactor.plan_host(&thread, 400, Models::default()))?;
    /// let applied = planned.plan.apply(&mut thread, |new, _| (new.role, new.text()))?;
    /// assert!(planned.record.report.after.tokens <= 400);
    /// assert_eq!(thread.last().map(|(_, text)| text.as_ptr()), Some(last), "it is the same value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CompactionError`](crate::drive::CompactionError), for the same reasons as
    /// [`compact`](Self::compact).
    pub async fn plan_host<'m, M: HostMessage>(
        &mut self,
        messages: &[M],
        brief: impl Into<Brief>,
        models: impl Into<Models<'m>>,
    ) -> Result<PlannedHost> {
        let (brief, models) = (brief.into(), models.into());
        self.observe_host(messages);
        let shadows = self.live.thread.as_ref().map(|thread| Arc::clone(thread.messages()));
        let shadows = shadows.unwrap_or_default();
        let brief = self.completed(brief);
        let record = self.carry_out(&brief, Work::Ask(models)).await?;
        let plan = HostPlan::new(&record.plan, &shadows)?;
        Ok(PlannedHost { plan, record })
    }

    /// Learns the ratio of estimated to reported tokens from the usage of an answer to the thread
    /// as it was last observed, for hosts whose messages do not carry it. Returns `false` if the
    /// report is implausible; nothing is learnt then.
    ///
    /// ```
    /// use threadfold::{Compactor, Role, Usage};
    ///
    /// let mut compactor = Compactor::default();
    /// compactor.observe_host(&[(Role::User, "word ".repeat(600))]);
    /// let before = compactor.context_tokens();
    /// assert!(compactor.learn(Usage::new(before * 2, 10)));
    /// assert!(compactor.context_tokens() > before);
    /// ```
    pub fn learn(&mut self, usage: Usage) -> bool {
        let estimated = self.size().tokens.saturating_add(self.overhead());
        self.ratio.learn(estimated, usage.input)
    }
}
