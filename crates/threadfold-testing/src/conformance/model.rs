//! The conformance suite for models.

use futures::{StreamExt, stream::BoxStream};
use threadfold::{
    message::{Answer, ContentBlock, Delta, Message, ModelError, Request, Role},
    model::Model,
};

use super::law::{Law, Result};

/// A stream that answers the suite's short question with more deltas than this counts as endless.
const MAX_DELTAS: usize = 1_000_000;

/// Tests a model: its streams end properly, the deltas agree with the answer, and dropping a stream
/// is harmless.
///
/// The model is asked up to five times to say hello, and must answer every time, or fail every time
/// with the same kind of error.
///
/// ```
/// use futures::executor::block_on;
/// use threadfold::testing::ScriptedModel;
/// use threadfold_testing::conformance;
///
/// let model = ScriptedModel::new(["hello"; 5]);
/// block_on(conformance::model(&model))?;
/// # Ok::<(), conformance::Breach>(())
/// ```
///
/// # Errors
///
/// The first [`Breach`](super::Breach).
pub async fn model(model: &dyn Model) -> Result<()> {
    let streamed = streamed(model.stream(question())).await?;
    let completed = model.complete(question()).await;
    agree(Law::CompleteAgrees, &streamed, &completed)?;

    // Drop a stream before its first poll, drop one after its first delta, then read one in full.
    drop(model.stream(question()));
    let mut begun = model.stream(question());
    let _ = begun.next().await;
    drop(begun);
    let again = self::streamed(model.stream(question())).await?;
    agree(Law::DropIsHarmless, &streamed, &again)
}

fn question() -> Request {
    let text = "Say hello, and nothing else.";
    Request { max_output: Some(64), ..Request::new(vec![Message::user(text)]) }
}

/// Reads a stream to its end and checks it.
pub(super) async fn streamed(
    mut deltas: BoxStream<'_, Result<Delta, ModelError>>,
) -> Result<Result<Answer, ModelError>> {
    let (mut text, mut thinking) = (String::new(), String::new());
    for _ in 0..MAX_DELTAS {
        let outcome = match deltas.next().await {
            None => {
                return Err(Law::StreamEnds.breach("a stream", "an answer or an error", "nothing"));
            }
            Some(Ok(Delta::Answer { answer })) => Ok(answer),
            Some(Err(error)) => Err(error),
            Some(Ok(delta)) => {
                if let Delta::Text { text: piece } = &delta {
                    text.push_str(piece);
                } else if let Delta::Thinking { text: piece } = &delta {
                    thinking.push_str(piece);
                }
                continue;
            }
        };
        if let Some(more) = deltas.next().await {
            let found = format!("{more:?}");
            return Err(Law::NothingFollows.breach("a stream", "its end", found));
        }
        if let Ok(answer) = &outcome {
            check_answer(answer, &text, &thinking)?;
        }
        return Ok(outcome);
    }
    Err(Law::StreamEnds.breach("a stream", "an answer or an error", "a million deltas"))
}

fn check_answer(answer: &Answer, text: &str, thinking: &str) -> Result<()> {
    let message = &answer.message;
    // What a provider withheld from its model is in no message.
    let mut expected = Answer::new(message.clone(), answer.stop_reason.clone(), answer.usage);
    expected.withheld.clone_from(&answer.withheld);
    if message.role != Role::Assistant || expected != *answer {
        let found = format!("{answer:?}");
        let expected = "what `Answer::new` makes of a message of the assistant";
        return Err(Law::AnswerIsAssistants.breach("an answer", expected, found));
    }
    let texts: String = message.texts().map(|text| text.as_str()).collect();
    let thoughts = message.content.iter().filter_map(|block| {
        if let ContentBlock::Thinking(thought) = block { Some(&*thought.text) } else { None }
    });
    let thoughts: String = thoughts.collect();
    for (pieces, whole) in [(text, texts), (thinking, thoughts)] {
        if !pieces.is_empty() && pieces != whole {
            return Err(Law::PiecesJoin.breach("a stream", whole, pieces));
        }
    }
    Ok(())
}

/// Checks that both outcomes are answers, or errors of the same kind. The texts may differ.
fn agree(
    law: Law,
    one: &Result<Answer, ModelError>,
    other: &Result<Answer, ModelError>,
) -> Result<()> {
    let [one, other] = [one, other].map(|outcome| match outcome {
        Ok(_) => "an answer".to_owned(),
        Err(error) => format!("an error: {}", error.kind),
    });
    if one == other { Ok(()) } else { Err(law.breach("the same question again", one, other)) }
}
