// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text to lower-case words without their endings.

/// Cuts one ending off, and again as long as a stem of three letters stays.
fn stem(word: &str) -> &str {
    const ENDINGS: [&str; 6] = ["is", "os", "ner", "ler", "tor", "eth"];
    for ending in ENDINGS {
        if let Some(rest) = word.strip_suffix(ending) {
            if rest.len() >= 3 {
                return stem(rest);
            }
        }
    }
    word
}

pub fn tokens(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let lower = word.to_lowercase();
            stem(&lower).to_string()
        })
}
