import { common } from './common';
import { tools } from './tools';
import { calls } from './calls';
import { govern } from './govern';
import { start } from './start';

export const messages = { ...common, ...tools, ...calls, ...govern, ...start };
