// Sets the chosen theme before the page is drawn. Without a choice, the theme of the system applies.
document.documentElement.dataset.scripts = '';
try {
  const theme = localStorage.getItem('theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The browser blocks storage: the theme of the system applies.
}
