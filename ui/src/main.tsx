import '@mantine/core/styles.css';
import '@mantine/notifications/styles.css';
import './app/app.css';
import { createRoot } from 'react-dom/client';
import { App } from './app/app';

const root = document.querySelector('#root');
if (root) createRoot(root).render(<App />);
