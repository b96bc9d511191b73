/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a name is once everything that another build changes is taken out of it, so that two
 * sessions of two builds can be compared.
 *
 *	core[5f3a1b2c]::fmt::write				core::fmt::write
 *	app::parse::h0123456789abcdef				app::parse
 *	app::run::{closure#3}, app::{impl#2}::next		app::run::{closure}, app::{impl}::next
 *	ns::f(int)::{lambda(int)#2}				ns::f(int)::{lambda(int)}
 *	parse.part.0, parse.isra.3.cold, f.llvm.1234		parse, parse, f
 *	t_one-598974d6c5b10e84 (a module)			t_one
 *
 * Rust has two manglings, of which one keeps type parameters and the other does not. What both have:
 *
 *	app::parse::<u32>, app::parse				app::parse
 *	<app::Acc<u64>>::total, app::Acc<T>::total		app::Acc::total
 *	<app::Acc<u64> as app::Step>::step,
 *	app::<impl app::Step for app::Acc<u64>>::step		<app::Acc as app::Step>::step
 *	app::run::{{closure}}, app::run::{closure#1}		app::run::{closure}
 *
 * Pure; any thread.
 */
#ifndef AS_MODEL_IDENTITY_H
#define AS_MODEL_IDENTITY_H

#include "base/buf.h"

/* Appends the stable form of a function's full (demangled) name. */
void as_stable_function(const char *full, struct as_buf *out);
/* The same of a Rust function, in the form that both manglings have. */
void as_loose_function(const char *full, struct as_buf *out);
/* Appends the stable form of a module's name: cargo's hash of tests and benches taken off. */
void as_stable_module(const char *name, struct as_buf *out);

#endif
