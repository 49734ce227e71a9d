import { accounts } from './accounts';
import { agents } from './agents';
import { applications } from './applications';
import { common } from './common';
import { tools } from './tools';
import { calls } from './calls';
import { chat } from './chat';
import { govern } from './govern';
import { people } from './people';
import { retrieval } from './retrieval';
import { signOn } from './sign-on';
import { start } from './start';
import { workspaces } from './workspaces';

export const messages = { ...common, ...tools, ...calls, ...chat, ...govern, ...people, ...accounts, ...applications, ...signOn, ...start, ...agents, ...retrieval, ...workspaces };
