/** The one request that is sent to the inference service (spec, inference service: Chat completion request). */

export interface ChatMessage {
  role: 'system' | 'user';
  content: string;
}

/** Nothing but what the specification shows: options beyond it may be refused. */
export interface ChatRequest {
  /** `<vendor>/<model_name>`. */
  model: string;
  messages: readonly ChatMessage[];
}
