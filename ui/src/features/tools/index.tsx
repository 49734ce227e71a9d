export function ToolsPage() { return null; }
export function NewToolPage() { return null; }
export function ToolPage() { return null; }
