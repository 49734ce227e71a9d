import { common } from './common';
import { tools } from './tools';
import { calls } from './calls';
import { govern } from './govern';
import { start } from './start';
import { workspaces } from './workspaces';

export const messages = { ...common, ...tools, ...calls, ...govern, ...start, ...workspaces };
