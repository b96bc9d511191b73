// SPDX-License-Identifier: MIT OR Apache-2.0
// A small highlighter for Rust, C and C++, and Intel assembly, line by line.
//
// `highlightLine(lang, state, text)` gives tokens and the state for the next line. The tokens are
// contiguous and cover the text exactly, whatever the text is: at worst a colour is wrong, never a
// character. A snippet that begins inside a comment or a string is coloured as if it did not; a
// state is a short string, "" at the beginning of a file. Lines longer than HIGHLIGHT_MAX are left
// plain, so that a generated line of a megabyte costs nothing.

/** @typedef {'rust' | 'c' | 'asm' | 'plain'} Lang */
/** @typedef {'' | 'comment' | 'string' | 'number' | 'keyword' | 'type' | 'macro' | 'life' | 'call'
 *   | 'register' | 'mnemonic' | 'jump' | 'address'} TokenKind */
/** @typedef {{kind: TokenKind, from: number, to: number}} Token */

export const HIGHLIGHT_MAX = 4000;

const RUST_WORDS = new Set(('as async await box break const continue crate dyn else enum extern ' +
	'false fn for gen if impl in let loop macro_rules match mod move mut pub ref return self ' +
	'Self static struct super trait true type union unsafe use where while yield').split(' '));
const C_WORDS = new Set(('alignas alignof asm auto bool break case catch char class concept const ' +
	'consteval constexpr constinit continue co_await co_return co_yield decltype default delete ' +
	'do double dynamic_cast else enum explicit export extern false float for friend goto if ' +
	'inline int long mutable namespace new noexcept nullptr operator private protected public ' +
	'register reinterpret_cast requires restrict return short signed sizeof static ' +
	'static_assert static_cast struct switch template this thread_local throw true try typedef ' +
	'typeid typename typeof union unsigned using virtual void volatile wchar_t while NULL ' +
	'_Atomic _Bool _Generic _Noreturn _Static_assert _Thread_local __attribute__ __restrict')
	.split(' '));
const RUST_TYPES = new Set(('bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 ' +
	'usize').split(' '));
const C_TYPE = /^(?:[a-z]\w*_t|[A-Z][a-z]\w*)$/;

const CODE_WORD = /[\p{ID_Start}_][\p{ID_Continue}]*/uy;
const CODE_NUMBER = /(?:0[xX][\da-fA-F_']+|0[bB][01_']+|0o[0-7_]+|\d[\d_']*(?:\.\d[\d_]*)?(?:[eE][+-]?\d[\d_]*)?)[\w]*/y;
const CODE_SPACES = /\s+/y;

/**
 * The language of a file, by its name.
 * @param {string} path
 * @returns {Lang}
 */
export function langOfPath(path) {
	if (/\.rs$/.test(path))
		return 'rust';
	return /\.(?:c|h|cc|cpp|cxx|c\+\+|hh|hpp|hxx|inl|inc|ipp|tcc|m|mm|cu)$|\/include\/c\+\+\//i.test(path)
		? 'c' : 'plain';
}

/** One line being cut into tokens. */
class LineCutter {
	/** @param {string} text */
	constructor(text) {
		this.text = text;
		this.at = 0;
		/** @type {Token[]} */
		this.tokens = [];
	}

	/**
	 * Everything up to `to` is of one kind.
	 * @param {TokenKind} kind
	 * @param {number} to
	 */
	take(kind, to) {
		const end = Math.min(Math.max(to, this.at), this.text.length);
		if (end === this.at)
			return;
		const last = this.tokens[this.tokens.length - 1];
		if (last && last.kind === kind)
			last.to = end;
		else
			this.tokens.push({kind, from: this.at, to: end});
		this.at = end;
	}

	/**
	 * The end of what a sticky expression matches here, 0 when it does not.
	 * @param {RegExp} re
	 */
	match(re) {
		re.lastIndex = this.at;
		const m = re.exec(this.text);
		return m && m[0].length ? this.at + m[0].length : 0;
	}

	/**
	 * End of a string that begins at `from` (behind its opening quote), or -1 when the line ends
	 * inside of it. A backslash takes the next character with it.
	 * @param {number} from
	 * @param {string} quote
	 */
	endOfString(from, quote) {
		for (let i = from; i < this.text.length; i++) {
			if (this.text[i] === '\\')
				i++;
			else if (this.text[i] === quote)
				return i + 1;
		}
		return -1;
	}

	/** @param {string} what @param {number} [ahead] */
	looking(what, ahead = 0) {
		return this.text.startsWith(what, this.at + ahead);
	}
}

/**
 * Inside a block comment that may nest `depth` deep (C's do not nest).
 * @param {LineCutter} line
 * @param {number} depth
 * @param {boolean} nests
 * @returns {string} the state behind it
 */
function cutComment(line, depth, nests) {
	let i = line.at;
	while (depth > 0 && i < line.text.length) {
		if (line.text.startsWith('*/', i)) {
			depth--;
			i += 2;
		} else if (nests && line.text.startsWith('/*', i)) {
			depth++;
			i += 2;
		} else {
			i++;
		}
	}
	line.take('comment', i);
	return depth > 0 ? `c${depth}` : '';
}

/**
 * Inside a string that ends with `end` and knows no escapes.
 * @param {LineCutter} line
 * @param {string} end
 * @returns {string}
 */
function cutRaw(line, end) {
	const i = line.text.indexOf(end, line.at);
	line.take('string', i < 0 ? line.text.length : i + end.length);
	return i < 0 ? `r${end}` : '';
}

/**
 * Inside a string with escapes. C's ends with the line unless a backslash stands last.
 * @param {LineCutter} line
 * @param {number} from  behind the opening quote
 * @param {boolean} spans  lines
 * @returns {string}
 */
function cutString(line, from, spans) {
	const end = line.endOfString(from, '"');
	line.take('string', end < 0 ? line.text.length : end);
	return end < 0 && (spans || /(?:^|[^\\])(?:\\\\)*\\$/.test(line.text)) ? 's' : '';
}

/**
 * @param {LineCutter} line
 * @param {string} state
 * @param {boolean} rust
 * @returns {string}
 */
function cutResumed(line, state, rust) {
	if (state[0] === 'c')
		return cutComment(line, Number(state.slice(1)) || 1, rust);
	if (state[0] === 'r')
		return cutRaw(line, state.slice(1));
	return cutString(line, line.at, rust);
}

/**
 * Comments and strings, which both languages begin in nearly the same way.
 * @param {LineCutter} line
 * @param {boolean} rust
 * @returns {string | null} the state behind it; null: something else stands here
 */
function cutCommentOrString(line, rust) {
	if (line.looking('//')) {
		line.take('comment', line.text.length);
		return '';
	}
	if (line.looking('/*')) {
		line.take('comment', line.at + 2);
		return cutComment(line, 1, rust);
	}
	const raw = rust ? /(?:br|cr|r)(#*)"/y : /(?:u8|u|U|L)?R"([^()\\\s]{0,16})\(/y;
	raw.lastIndex = line.at;
	const m = raw.exec(line.text);
	if (m) {
		line.take('string', line.at + m[0].length);
		return cutRaw(line, rust ? `"${m[1]}` : `)${m[1]}"`);
	}
	const prefix = rust ? /(?:b|c)?"/y : /(?:u8|u|U|L)?"/y;
	const quote = line.match(prefix);
	return quote ? cutString(line, quote, rust) : null;
}

/**
 * 'a' and 'a: a character or a lifetime.
 * @param {LineCutter} line
 */
function cutRustQuote(line) {
	const chars = /b?'(?:\\(?:u\{[^}]*\}|x[\da-fA-F]{2}|.)|[^\\'])'/uy;
	const life = /'[\p{ID_Start}_][\p{ID_Continue}]*/uy;
	const end = line.match(chars);
	if (end)
		return line.take('string', end);
	const to = line.match(life);
	line.take(to ? 'life' : '', to || line.at + 1);
}

/**
 * @param {LineCutter} line
 * @param {number} end of the word
 * @param {boolean} rust
 */
function cutWord(line, end, rust) {
	const w = line.text.slice(line.at, end);
	if (rust && line.text[end] === '!' && line.text[end + 1] !== '=')
		return line.take('macro', end + 1);
	if ((rust ? RUST_WORDS : C_WORDS).has(w))
		return line.take('keyword', end);
	if (rust ? RUST_TYPES.has(w) || /^\p{Lu}/u.test(w) && /\p{Ll}|^.$/u.test(w) : C_TYPE.test(w))
		return line.take('type', end);
	line.take(/^\s*(?:::<[^>]*>)?\(/.test(line.text.slice(end, end + 40)) ? 'call' : '', end);
}

/**
 * @param {LineCutter} line
 * @param {string} state
 * @param {boolean} rust
 * @returns {string}
 */
function cutCode(line, state, rust) {
	if (state)
		state = cutResumed(line, state, rust);
	if (!rust && !state && /^\s*#\s*\w*/.test(line.text) && line.at === 0)
		line.take('macro', /** @type {RegExpExecArray} */(/^\s*#\s*\w*/.exec(line.text))[0].length);
	else if (rust && !state && /^\s*#!?\[/.test(line.text) && line.at === 0)
		line.take('macro', line.text.indexOf('[') + 1);
	while (line.at < line.text.length) {
		const after = cutCommentOrString(line, rust);
		if (after !== null) {
			state = after;
			continue;
		}
		const c = line.text[line.at];
		if (c === "'" || rust && c === 'b' && line.text[line.at + 1] === "'") {
			if (rust)
				cutRustQuote(line);
			else
				line.take('string', Math.max(line.endOfString(line.at + 1, "'"), line.at + 1));
			continue;
		}
		cutOther(line, rust);
	}
	return state;
}

/** @param {LineCutter} line @param {boolean} rust */
function cutOther(line, rust) {
	const space = line.match(CODE_SPACES);
	if (space)
		return line.take('', space);
	const number = line.match(CODE_NUMBER);
	if (number)
		return line.take('number', number);
	const w = line.match(CODE_WORD);
	if (w)
		return cutWord(line, w, rust);
	// A pair of surrogates is one character.
	line.take('', line.at + ((line.text.codePointAt(line.at) || 0) > 0xffff ? 2 : 1));
}

const ASM_REGISTER = new RegExp('^(?:[re]?[abcd]x|[abcd][lh]|[re]?[sd]i|[sd]il|[re]?[sbi]p|[sb]pl|' +
	'r\\d+[dwb]?|[xyz]?mm\\d+|k[0-7]|st\\d?|[cdefgs]s|[wx]\\d+|[vqdsbh]\\d+|[wx]zr|lr|fp)$', 'i');
const ASM_SIZE = /^(?:byte|word|dword|qword|xmmword|ymmword|zmmword|tbyte|fword|ptr|offset|short|near|far)$/i;
const ASM_WORD = /[A-Za-z_.$@?][\w.$@?]*/y;
const ASM_NUMBER = /(?:0x[\da-fA-F]+|\d[\da-fA-F]*h|\d+)\b/y;

/**
 * One instruction: mnemonic (with prefixes), then operands.
 * @param {LineCutter} line
 */
function cutAsm(line) {
	const head = /^\s*(?:(?:lock|repn?e?z?|notrack|bnd|data16)\s+)*([\w.]+)/.exec(line.text);
	if (head) {
		const jump = /^(?:j\w+|call|ret\w*|loop\w*|b|bl|br|blr|b\..*|cbn?z|tbn?z|syscall|iret\w*|ud2)$/i;
		line.take(jump.test(head[1]) ? 'jump' : 'mnemonic', head[0].length);
	}
	while (line.at < line.text.length) {
		const c = line.text[line.at];
		// A name in angle brackets is a symbol, with everything in it.
		if (c === ';' || c === '#' && line.match(/#\s/y) || line.looking('//')) {
			line.take('comment', line.text.length);
			continue;
		}
		const symbol = line.match(/<[A-Za-z_$].*>(?:\+0x[\da-f]+)?/y);
		const number = symbol ? 0 : line.match(ASM_NUMBER);
		const w = symbol || number ? 0 : line.match(ASM_WORD);
		if (symbol)
			line.take('address', symbol);
		else if (number)
			line.take('number', number);
		else if (w)
			line.take(asmKind(line.text.slice(line.at, w)), w);
		else
			line.take('', line.at + 1);
	}
}

/** @param {string} w @returns {TokenKind} */
function asmKind(w) {
	return ASM_REGISTER.test(w) ? 'register' : ASM_SIZE.test(w) ? '' : 'address';
}

/**
 * @param {Lang} lang
 * @param {string} state  "" for the first line
 * @param {string} text   without its line end
 * @returns {{state: string, tokens: Token[]}}
 */
export function highlightLine(lang, state, text) {
	const line = new LineCutter(text);
	let after = '';
	if (lang === 'plain' || text.length > HIGHLIGHT_MAX)
		line.take('', text.length);
	else if (lang === 'asm')
		cutAsm(line);
	else
		after = cutCode(line, state, lang === 'rust');
	line.take('', text.length);
	return {state: after, tokens: line.tokens};
}

/**
 * All lines of a file or snippet; null: lines are left out here.
 * @param {Lang} lang
 * @param {(string | null)[]} lines
 * @returns {Token[][]}
 */
export function highlightLines(lang, lines) {
	let state = '';
	return lines.map(text => {
		if (text === null) {
			state = '';
			return [];
		}
		const r = highlightLine(lang, state, text);
		state = r.state;
		return r.tokens;
	});
}
