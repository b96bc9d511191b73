// SPDX-License-Identifier: MIT OR Apache-2.0
// The page's frame.
import { el, fill } from './page.js';

const app = document.getElementById('app');
if (app)
	fill(app, el('p', {}, 'No view yet.'));
